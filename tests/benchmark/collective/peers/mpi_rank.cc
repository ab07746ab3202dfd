// A rank that all-reduces with MPI: mpirun -n RANKS mpi_rank BYTES,BYTES,...
#include <mpi.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/benchmark/collective/rank_timing.h"

int main(int argc, char** argv) {
  if (argc != 2 || MPI_Init(&argc, &argv) != MPI_SUCCESS) return 2;
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::stringstream sizes(argv[1]);
  for (std::string size; std::getline(sizes, size, ',');) {
    const size_t bytes = std::stoull(size);
    const size_t count = bytes / sizeof(float);
    std::vector<float> values(count, parasol::ContributionOfRank(rank));
    std::vector<float> sums(count);
    parasol::TimeRounds(bytes, rank == 0, [&] {
      MPI_Allreduce(values.data(), sums.data(), static_cast<int>(count),
                    MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    });
    parasol::CheckSums(sums.data(), count, ranks);
  }
  MPI_Finalize();
  return 0;
}
