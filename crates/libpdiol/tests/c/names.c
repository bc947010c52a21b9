/* names.c - with a namespace a name may be of any bytes. */
#include "check.h"

int main(int argc, char **argv)
{
    static const char name[] = "caf\xe9";
    char text[8] = "";
    struct pdiol_state_struct state;
    PFS_FILE *file;

    CHECK(initialize_pdiol(&argc, &argv) == 0);
    CHECK_FAILS(ENOENT, pdiol_stat(name, &state) == -1);
    file = pdiol_fopen(name, "wx");
    CHECK(file != NULL && pdiol_fwrite("latte", 1, 5, file) == 5);
    CHECK(pdiol_fclose(file) == 0);
    CHECK(pdiol_stat(name, &state) == 0 && state.size == 5);
    /* It is no other file, whatever an error may show in its place. */
    CHECK_FAILS(ENOENT, pdiol_fopen("caf\xef\xbf\xbd", "r") == NULL);
    file = pdiol_fopen(name, "r");
    CHECK(file != NULL && pdiol_fread(text, 1, 7, file) == 5 && strcmp(text, "latte") == 0);
    CHECK(pdiol_fclose(file) == 0);
    CHECK_FAILS(EINVAL, pdiol_fopen(name, "r\xff") == NULL);
    CHECK(pdiol_unlink(name) == 0);
    CHECK_FAILS(ENOENT, pdiol_unlink(name) == -1);
    CHECK(finalize_pdiol() == 0);
    return 0;
}
