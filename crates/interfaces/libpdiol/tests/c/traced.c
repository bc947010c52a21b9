/* Writes a file of several pages and reads it sequentially. */

#include <pdiol.h>
#include <stdlib.h>

#define RECORDS 4096
#define RECORD 1024

int main(int argc, char **argv)
{
    static char record[RECORD];
    PFS_FILE *file;
    int i;

    if (initialize_pdiol(&argc, &argv) != 0)
        return EXIT_FAILURE;
    file = pdiol_fopen("traced", "w");
    if (file == NULL)
        return EXIT_FAILURE;
    for (i = 0; i < RECORDS; i++)
        if (pdiol_fwrite(record, RECORD, 1, file) != 1)
            return EXIT_FAILURE;
    if (pdiol_fclose(file) != 0)
        return EXIT_FAILURE;
    file = pdiol_fopen("traced", "r");
    if (file == NULL)
        return EXIT_FAILURE;
    for (i = 0; i < RECORDS; i++)
        if (pdiol_fread(record, RECORD, 1, file) != 1)
            return EXIT_FAILURE;
    if (pdiol_fclose(file) != 0)
        return EXIT_FAILURE;
    return finalize_pdiol() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
