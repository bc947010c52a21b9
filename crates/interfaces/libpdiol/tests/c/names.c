/* names.c - a name may contain any bytes. */
#include "check.h"

#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const char name[] = "caf\xe9";
    char text[8] = "";
    struct pdiol_state_struct state;
    PFS_FILE *file;

    CHECK(initialize_pdiol(&argc, &argv) == 0);
    CHECK_FAILS(ENOENT, pdiol_stat(name, &state) == -1);
    /* A directory cannot be opened, and an empty path does not exist. */
    CHECK_FAILS(EISDIR, pdiol_fopen("/", "r") == NULL);
    CHECK_FAILS(EISDIR, pdiol_stat("/", &state) == -1);
    CHECK_FAILS(ENOENT, pdiol_fopen("", "r") == NULL);
    CHECK_FAILS(ENOENT, pdiol_fopen("", "w") == NULL);
    CHECK_FAILS(ENOENT, pdiol_stat("", &state) == -1);
    CHECK_FAILS(ENOENT, pdiol_unlink("") == -1);
    file = pdiol_fopen(name, "wx");
    CHECK(file != NULL && pdiol_fwrite("latte", 1, 5, file) == 5);
    CHECK(pdiol_fclose(file) == 0);
    CHECK(pdiol_stat(name, &state) == 0 && state.size == 5);
    CHECK(state.mode == 0644 && state.uid == getuid() && state.gid == getgid());
    int64_t made = state.modified;
    CHECK(llabs(made / 1000000000 - (int64_t)time(NULL)) < 100 && state.changed >= made && state.accessed > 0);
    file = pdiol_fopen(name, "r+");
    CHECK(file != NULL && pdiol_fwrite("mocha", 1, 5, file) == 5 && pdiol_fstat(file, &state) == 0);
    CHECK(state.modified > made && state.changed >= state.modified && state.uid == getuid());
    CHECK(pdiol_fseek(file, 0, SEEK_SET) == 0 && pdiol_fwrite("latte", 1, 5, file) == 5 && pdiol_fclose(file) == 0);
    /* A replacement character in an error message does not name the same file. */
    CHECK_FAILS(ENOENT, pdiol_fopen("caf\xef\xbf\xbd", "r") == NULL);
    file = pdiol_fopen(name, "r");
    CHECK(file != NULL && pdiol_fread(text, 1, 7, file) == 5 && strcmp(text, "latte") == 0);
    CHECK(pdiol_fclose(file) == 0);
    CHECK_FAILS(EINVAL, pdiol_fopen(name, "r\xff") == NULL);
    CHECK(pdiol_unlink(name) == 0);
    CHECK_FAILS(ENOENT, pdiol_unlink(name) == -1);
    /* The end of the session removes a temporary file, unless the name then belongs to another file. */
    for (int which = 0; which < 2; which++) {
        file = pdiol_fopen(which == 0 ? name : "other", "wx");
        CHECK(file != NULL && pdiol_hint(file, AP_SEQUENTIAL, TEMPORARY_FILE) == 0);
        CHECK(pdiol_fwrite("decaf", 1, 5, file) == 5 && pdiol_fclose(file) == 0);
    }
    CHECK(pdiol_unlink("other") == 0);
    file = pdiol_fopen("other", "wx");
    CHECK(file != NULL && pdiol_fwrite("stays", 1, 5, file) == 5 && pdiol_fclose(file) == 0);
    CHECK(finalize_pdiol() == 0);
    CHECK(initialize_pdiol(NULL, NULL) == 0);
    CHECK_FAILS(ENOENT, pdiol_stat(name, &state) == -1);
    CHECK(pdiol_stat("other", &state) == 0 && state.size == 5);
    CHECK(finalize_pdiol() == 0);
    return 0;
}
