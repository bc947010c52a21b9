/*
 * Errors: converts error classes of the core to those of MPI, and calls error handlers. A file of the MPI library (the
 * surrogate) holds the error handler of one of our files, so that the library counts references to the handler and can
 * call handlers in any language.
 */

#include "shim.h"

/* True if the program has set an error handler for MPI_FILE_NULL. Files opened later inherit this handler. */
static int has_default;

/* Returns the MPI error code for an error class of the core. */
static int code_of(int class)
{
    switch (class) {
    case 0: return MPI_SUCCESS;
    case STARFISH_MPI_ARGUMENT: return MPI_ERR_ARG;
    case STARFISH_MPI_TYPE: return MPI_ERR_TYPE;
    case STARFISH_MPI_MODE: return MPI_ERR_AMODE;
    case STARFISH_MPI_UNSUPPORTED: return MPI_ERR_UNSUPPORTED_OPERATION;
    case STARFISH_MPI_NOT_SAME: return MPI_ERR_NOT_SAME;
    case STARFISH_MPI_BAD_FILE: return MPI_ERR_BAD_FILE;
    case STARFISH_MPI_NO_SUCH_FILE: return MPI_ERR_NO_SUCH_FILE;
    case STARFISH_MPI_EXISTS: return MPI_ERR_FILE_EXISTS;
    case STARFISH_MPI_IN_USE: return MPI_ERR_FILE_IN_USE;
    case STARFISH_MPI_READ_ONLY: return MPI_ERR_READ_ONLY;
    case STARFISH_MPI_ACCESS: return MPI_ERR_ACCESS;
    case STARFISH_MPI_NO_SPACE: return MPI_ERR_NO_SPACE;
    case STARFISH_MPI_COUNT: return MPI_ERR_COUNT;
    case STARFISH_MPI_NO_MEMORY: return MPI_ERR_NO_MEM;
    }
    return MPI_ERR_IO;
}

static int open_surrogate(struct our_file *file)
{
    if (file->has_surrogate) {
        return MPI_SUCCESS;
    }
    int code = REAL(File_open)(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDONLY, MPI_INFO_NULL, &file->surrogate);
    file->has_surrogate = code == MPI_SUCCESS;
    return code;
}

/* Calls the error handler of MPI_FILE_NULL. Open MPI calls handlers only for an open file, so open one, which inherits
   this handler. */
static void call_default(int code)
{
#ifdef OPEN_MPI
    struct our_file none = {0};
    if (open_surrogate(&none) == MPI_SUCCESS) {
        REAL(File_call_errhandler)(none.surrogate, code);
        starfish_shim_close_surrogate(&none);
    }
#else
    REAL(File_call_errhandler)(MPI_FILE_NULL, code);
#endif
}

int starfish_shim_raise(struct our_file *file, int code)
{
    if (code == MPI_SUCCESS) {
        return code;
    }
    if (file && file->has_surrogate) {
        REAL(File_call_errhandler)(file->surrogate, code);
    } else if (!file && has_default) {
        call_default(code);
    }
    return code;
}

int starfish_shim_fail(struct our_file *file, int class)
{
    if (class) {
        starfish_mpi_tell_error();
    }
    return starfish_shim_raise(file, code_of(class));
}

int starfish_shim_take_default(struct our_file *file)
{
    return has_default ? open_surrogate(file) : MPI_SUCCESS;
}

void starfish_shim_close_surrogate(struct our_file *file)
{
    if (file->has_surrogate) {
        file->has_surrogate = 0;
        REAL(File_close)(&file->surrogate);
    }
}

DEFINE(File_set_errhandler, (MPI_File fh, MPI_Errhandler handler), (fh, handler))
{
    struct our_file *file = starfish_shim_find(fh);
    if (!file) {
        has_default |= fh == MPI_FILE_NULL;
        return NEXT(File_set_errhandler)(fh, handler);
    }
    int code = open_surrogate(file);
    return code == MPI_SUCCESS ? REAL(File_set_errhandler)(file->surrogate, handler) : code;
}

DEFINE(File_get_errhandler, (MPI_File fh, MPI_Errhandler *handler), (fh, handler))
{
    struct our_file *file = starfish_shim_find(fh);
    if (!file) {
        return NEXT(File_get_errhandler)(fh, handler);
    }
    int code = open_surrogate(file);
    return code == MPI_SUCCESS ? REAL(File_get_errhandler)(file->surrogate, handler) : code;
}

DEFINE(File_call_errhandler, (MPI_File fh, int code), (fh, code))
{
    struct our_file *file = starfish_shim_find(fh);
    if (!file) {
        return NEXT(File_call_errhandler)(fh, code);
    }
    return file->has_surrogate ? REAL(File_call_errhandler)(file->surrogate, code) : MPI_SUCCESS;
}

DEFINE(File_create_errhandler, (MPI_File_errhandler_function *function, MPI_Errhandler *handler),
       (function, handler))
{
    return NEXT(File_create_errhandler)(function, handler);
}
