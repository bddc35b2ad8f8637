// train_allreduce_gloo RANKS BYTES REPEATS: as train_allreduce, by Gloo with its default algorithm
// over loopback TCP.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/clock.h"

namespace {

constexpr int kWarmUps = 3;

void Work(int ranks, std::size_t bytes, int repeats, int rank, const std::string& folder) {
  gloo::transport::tcp::attr where;
  where.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(where);
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  std::vector<float> values(bytes / sizeof(float));
  muster::SystemClock clock;
  for (int i = -kWarmUps; i < repeats; ++i) {
    gloo::BarrierOptions barrier(context);
    gloo::barrier(barrier);
    const std::int64_t began_ns = clock.MonotonicNs();
    gloo::AllreduceOptions options(context);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
    const double ms = static_cast<double>(clock.MonotonicNs() - began_ns) * 1e-6;
    if (rank == 0 && i >= 0) std::printf("%.4f\n", ms);
  }
  gloo::BarrierOptions barrier(context);
  gloo::barrier(barrier);
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 2;
  const int ranks = std::atoi(words[1]);
  std::string folder = std::filesystem::temp_directory_path() / "muster-gloo-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Work(ranks, static_cast<std::size_t>(std::atoll(words[2])), std::atoi(words[3]), rank, folder);
    std::fflush(nullptr);
    _exit(0);
  }
  int failed = 0, status = 0;
  while (wait(&status) > 0) failed += status == 0 ? 0 : 1;
  std::filesystem::remove_all(folder);
  return failed == 0 ? 0 : 1;
}
