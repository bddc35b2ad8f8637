// train_allreduce RANKS BYTES REPEATS shm|tcp [ALGORITHM]: milliseconds of each all-reduce, one a
// line.
//
// So many processes, float32, in place, in the memory of the mesh; timed at rank 0 from a barrier
// on. The first ones warm up and are not printed; the sums are checked before.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "train/collective/collective.h"
#include "train/mesh/mesh.h"

namespace muster::train {
namespace {

constexpr int kWarmUps = 3;

struct Task {
  int ranks = 2, repeats = 10;
  std::size_t bytes = 0;
  bool share = true;
  Algorithm algorithm = Algorithm::kAuto;
};

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "train_allreduce: %s\n", why.c_str());
  std::exit(1);
}

template <typename T>
T Good(Result<T> result) {
  if (!result) Die(Describe(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

void SendLine(int fd, const std::string& text) {
  const std::string line = text + "\n";
  if (write(fd, line.data(), line.size()) < 0) Die("a worker has ended");
}

std::string ReadLine(int fd) {
  std::string line;
  char letter = 0;
  while (read(fd, &letter, 1) == 1 && letter != '\n') line += letter;
  return line;
}

void Check(Collective& collective, std::span<float> values, const Task& task, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 1000) * static_cast<float>(rank + 1);
  }
  Good(collective.AllReduce(values, task.algorithm));
  const auto total = static_cast<float>(task.ranks * (task.ranks + 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<float>(i % 1000) * total) Die("a sum is wrong");
  }
  std::ranges::fill(values, 0.0F);
}

void Work(const Task& task, int rank, int line) {
  MeshOptions options;
  options.job = "bench";
  options.secret = "only processes of this program meet";
  options.memory_bytes = task.bytes;
  options.share_memory = task.share;
  options.timeout_ms = 30'000;
  const auto mesh = Good(Mesh::Open(options, {}));
  const Endpoint& self = mesh->self();
  std::ostringstream out;
  out << self.id << ' ' << self.address << ' ' << self.segment;
  SendLine(line, out.str());
  std::vector<MemberId> members;
  for (int i = 0; i < task.ranks; ++i) {
    Endpoint peer;
    std::istringstream in(ReadLine(line));
    in >> peer.id >> peer.address >> peer.segment;
    peer.host = self.host;
    members.push_back(peer.id);
    if (i < rank) Good(mesh->Connect(peer));
  }
  SendLine(line, "connected");
  ReadLine(line);
  {
    const auto fabric = Good(mesh->Enter(1, members));
    const auto collective = Good(Collective::Open(*fabric));
    const std::span values(reinterpret_cast<float*>(mesh->memory().data()),
                           task.bytes / sizeof(float));
    Check(*collective, values, task, rank);
    SystemClock clock;
    for (int i = -kWarmUps; i < task.repeats; ++i) {
      Good(collective->Barrier());
      const std::int64_t began_ns = clock.MonotonicNs();
      Good(collective->AllReduce(values, task.algorithm));
      const double ms = static_cast<double>(clock.MonotonicNs() - began_ns) * 1e-6;
      if (rank == 0 && i >= 0) std::printf("%.4f\n", ms);
    }
    SendLine(line, "done");
    ReadLine(line);
  }
}

int Run(const Task& task) {
  std::vector<int> lines;
  for (int rank = 0; rank < task.ranks; ++rank) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) Die("no sockets");
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Work(task, rank, ends[1]);
      std::exit(0);
    }
    close(ends[1]);
    lines.push_back(ends[0]);
  }
  for (int turn = 0; turn < 3; ++turn) {  // endpoints, connected, done: each when all have
    std::string all;
    for (const int line : lines) all += ReadLine(line) + "\n";
    all.pop_back();
    for (const int line : lines) SendLine(line, turn == 0 ? all : "go");
  }
  int failed = 0, status = 0;
  while (wait(&status) > 0) failed += status == 0 ? 0 : 1;
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::train

int main(int count, char** words) {
  using muster::train::Algorithm;
  if (count < 5) {
    std::fprintf(stderr, "train_allreduce RANKS BYTES REPEATS shm|tcp [ALGORITHM]\n");
    return 2;
  }
  muster::train::Task task{std::atoi(words[1]), std::atoi(words[3]),
                           static_cast<std::size_t>(std::atoll(words[2])),
                           std::string(words[4]) == "shm", Algorithm::kAuto};
  for (const auto algorithm : {Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree}) {
    if (count > 5 && std::string(words[5]) == NameOf(algorithm)) task.algorithm = algorithm;
  }
  return Run(task);
}
