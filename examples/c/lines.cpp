// lines.cpp - a C++ program: writes lines to a PDIOL file, and reads them back.
//
//     lines notes.txt first second third
//
// Compile with: c++ lines.cpp $(pkg-config --cflags --libs pdiol) -o lines
#include <pdiol.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

// Closes a file when it goes out of scope.
struct Close {
    void operator()(PFS_FILE *file) const { pdiol_fclose(file); }
};
using File = std::unique_ptr<PFS_FILE, Close>;

static int fail()
{
    std::cerr << pdiol_strerror() << '\n';
    return 1;
}

int main(int argc, char **argv)
{
    if (initialize_pdiol(&argc, &argv) != 0)
        return fail();
    if (argc < 2) {
        std::cerr << "usage: " << argv[0] << " [PDIOL options -] pdiol_file [line ...]\n";
        return 2;
    }
    File file(pdiol_fopen(argv[1], "w+"));
    if (!file)
        return fail();
    for (int line = 2; line < argc; line++)
        if (pdiol_fputs(argv[line], file.get()) != 0 || pdiol_putc('\n', file.get()) == EOF)
            return fail();

    pdiol_rewind(file.get());
    std::string line;
    for (int byte; (byte = pdiol_getc(file.get())) != EOF;) {
        line += static_cast<char>(byte);
        if (byte == '\n') {
            std::cout << line;
            line.clear();
        }
    }
    // Close explicitly, to check that all data were written.
    if (pdiol_ferror(file.get()) || pdiol_fclose(file.release()) != 0 || finalize_pdiol() != 0)
        return fail();
    return 0;
}
