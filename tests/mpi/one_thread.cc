// Put in front of the MPI library (LD_PRELOAD): an MPI whose calls may come from one thread alone.
#include <mpi.h>

extern "C" int MPI_Init_thread(int* argc, char*** argv, int, int* provided) {
  return PMPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, provided);
}
