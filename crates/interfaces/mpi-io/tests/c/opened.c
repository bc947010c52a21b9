/* Opens a file for writing or reading. Each process prints the name of the error class. opened NAME write|read */
#include "check.h"

static const char *name_of(int class)
{
    static const struct { int class; const char *name; } names[] = {
        {MPI_SUCCESS, "MPI_SUCCESS"},
        {MPI_ERR_IO, "MPI_ERR_IO"},
        {MPI_ERR_ACCESS, "MPI_ERR_ACCESS"},
        {MPI_ERR_NO_SUCH_FILE, "MPI_ERR_NO_SUCH_FILE"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].class == class) {
            return names[i].name;
        }
    }
    return "another class";
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(argc == 3);
    MPI_File file;
    int mode = strcmp(argv[2], "write") == 0 ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
    int code = MPI_File_open(MPI_COMM_WORLD, argv[1], mode, MPI_INFO_NULL, &file);
    int class = class_of(code), *classes = calloc((size_t)size, sizeof(int));
    MPI_Gather(&class, 1, MPI_INT, classes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < size; i++) {
        printf("%s\n", name_of(classes[i]));
    }
    free(classes);
    if (code == MPI_SUCCESS) {
        OK(MPI_File_close(&file));
    }
    return end();
}
