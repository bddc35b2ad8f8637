// mpirun -n RANKS train_allreduce_openmpi BYTES REPEATS: as train_allreduce, by OpenMPI as it is
// set up.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/clock.h"

namespace {

constexpr int kWarmUps = 3;

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  MPI_Init(&count, &words);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<float> values(static_cast<std::size_t>(std::atoll(words[1])) / sizeof(float));
  muster::SystemClock clock;
  for (int i = -kWarmUps; i < std::atoi(words[2]); ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const std::int64_t began_ns = clock.MonotonicNs();
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    const double ms = static_cast<double>(clock.MonotonicNs() - began_ns) * 1e-6;
    if (rank == 0 && i >= 0) std::printf("%.4f\n", ms);
  }
  MPI_Finalize();
  return 0;
}
