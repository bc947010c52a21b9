! A two-dimensional field, distributed by columns: all processes write it to one file collectively, and read it back.
!
!   mpifort -o field field.f90
!   starfish mpi-run -n 4 ./field starfish:field
program field
    use mpi_f08
    implicit none
    integer, parameter :: rows = 300, columns = 200
    type(MPI_File) :: file
    type(MPI_Datatype) :: part
    integer :: rank, size, first, last, count, i, j, wrong
    integer(kind=MPI_OFFSET_KIND), parameter :: start = 0
    double precision, allocatable :: values(:, :), back(:, :)
    character(len=1024) :: name

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, size)
    name = 'starfish:field'
    if (command_argument_count() > 0) call get_command_argument(1, name)
    first = columns * rank / size
    last = columns * (rank + 1) / size
    count = rows * (last - first)
    allocate (values(rows, last - first), back(rows, last - first))
    do j = 1, last - first
        do i = 1, rows
            values(i, j) = dble(first + j - 1) * rows + i
        end do
    end do

    call MPI_Type_create_subarray(2, [rows, columns], [rows, last - first], [0, first], MPI_ORDER_FORTRAN, &
        MPI_DOUBLE_PRECISION, part)
    call MPI_Type_commit(part)
    call MPI_File_open(MPI_COMM_WORLD, trim(name), MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file)
    call MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL)
    call MPI_File_set_view(file, start, MPI_DOUBLE_PRECISION, part, 'native', MPI_INFO_NULL)
    call MPI_File_write_all(file, values, count, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE)
    call MPI_File_sync(file)
    call MPI_File_read_at_all(file, start, back, count, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE)
    call MPI_File_close(file)
    call MPI_Type_free(part)
    wrong = merge(0, 1, all(back == values))
    call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (rank == 0) print '(a, ": ", i0, " processes read wrong values")', trim(name), wrong
    call MPI_Finalize()
    if (wrong > 0) error stop
end program field
