// TestGang: real processes that form meshes, for tests.
//
// Each worker is forked, says through a socket pair how it is reached and gets the endpoints of all
// when everybody has; a test's expectations run in the workers, and a worker that has a failure
// exits with 1. Nothing here waits for time to pass.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "train/mesh/mesh.h"
#include "train/mesh/wire_port.h"

namespace muster::train {

inline void SendLine(int fd, const std::string& text) {
  const std::string line = text + "\n";
  ASSERT_EQ(write(fd, line.data(), line.size()), static_cast<ssize_t>(line.size()));
}

// Without the end of the line; empty when the other side is gone.
inline std::string ReadLine(int fd) {
  std::string line;
  char letter = 0;
  while (read(fd, &letter, 1) == 1 && letter != '\n') line += letter;
  return line;
}

inline std::string EndpointLine(const Endpoint& e) {
  std::ostringstream out;
  out << e.id << '\t' << e.host << '\t' << e.address << '\t' << e.segment << '\t'
      << e.segment_bytes;
  return out.str();
}

inline Endpoint ReadEndpoint(const std::string& line) {
  std::istringstream in(line);
  Endpoint e;
  std::string word;
  std::getline(in, word, '\t');
  e.id = std::stoull(word);
  std::getline(in, e.host, '\t');
  std::getline(in, e.address, '\t');
  std::getline(in, e.segment, '\t');
  in >> e.segment_bytes;
  return e;
}

// What a mesh tells, to be waited for.
class Inbox {
 public:
  MeshEvents Events() {
    return {[this](MemberId from, std::string bytes) {
              const std::lock_guard lock(mutex_);
              told_.emplace_back(from, std::move(bytes));
              changed_.notify_all();
            },
            [this](MemberId who, LostHow how) {
              const std::lock_guard lock(mutex_);
              lost_.emplace_back(who, how);
              changed_.notify_all();
            }};
  }
  std::pair<MemberId, std::string> NextTold() { return Next(told_); }
  std::pair<MemberId, LostHow> NextLost() { return Next(lost_); }
  // For what must never hang. None: nobody was lost for longer than any time-out of a test.
  std::optional<std::pair<MemberId, LostHow>> AwaitLost() {
    {
      std::unique_lock lock(mutex_);
      const auto there = [&] { return !lost_.empty(); };
      if (!changed_.wait_for(lock, std::chrono::seconds(30), there)) return std::nullopt;
    }
    return NextLost();
  }
  // What was told until now and not looked at.
  std::vector<std::string> AllTold() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> out;
    for (auto& [from, bytes] : told_) out.push_back(std::move(bytes));
    told_.clear();
    return out;
  }

 private:
  template <typename T>
  T Next(std::vector<T>& from) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !from.empty(); });
    T out = std::move(from.front());
    from.erase(from.begin());
    return out;
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<MemberId, std::string>> told_;
  std::vector<std::pair<MemberId, LostHow>> lost_;
};

inline MeshOptions TestOptions() {
  MeshOptions options;
  options.job = "test";
  options.secret = "a secret of the test";
  options.memory_bytes = 1 << 20;
  options.timeout_ms = 10'000;  // a loaded machine may be slow
  return options;
}

// Whether Gloo was there when this was built.
inline bool HasGloo() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  return std::filesystem::exists(program.parent_path() / kWirePortFile);
}

struct Worker {
  int rank = 0;
  int line = -1;  // to the test
  std::unique_ptr<Inbox> inbox;
  std::unique_ptr<Mesh> mesh;
  std::vector<Endpoint> all;

  std::vector<MemberId> Members() const {
    std::vector<MemberId> ids;
    ids.reserve(all.size());
    for (const auto& e : all) ids.push_back(e.id);
    return ids;
  }
  // Nobody leaves before everybody is done: TestGang::EndAll.
  void End() const {
    SendLine(line, "done");
    ReadLine(line);
  }
  std::unique_ptr<Fabric> Enter(std::uint64_t generation) {
    auto fabric = mesh->Enter(generation, Members());
    EXPECT_TRUE(fabric) << (fabric ? "" : fabric.error().message);
    return fabric ? std::move(*fabric) : nullptr;
  }
};

class TestGang {
 public:
  // `connected`: everybody is connected to everybody before the body runs.
  TestGang(std::vector<MeshOptions> options, const std::function<void(Worker&)>& body,
           bool connected = true) {
    for (std::size_t i = 0; i < options.size(); ++i) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      const pid_t pid = fork();
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(60);  // a hang is a failure
        for (const int line : lines_) close(line);
        close(ends[0]);
        Work(static_cast<int>(i), options.size(), ends[1], options[i], body, connected);
      }
      close(ends[1]);
      pids_.push_back(pid);
      lines_.push_back(ends[0]);
    }
    std::vector<std::string> endpoints;
    endpoints.reserve(lines_.size());
    for (const int line : lines_) endpoints.push_back(ReadLine(line));
    for (const int line : lines_) {
      for (const auto& endpoint : endpoints) SendLine(line, endpoint);
    }
  }
  ~TestGang() {
    for (const int line : lines_) close(line);
    for (const pid_t pid : pids_) {
      if (pid > 0) kill(pid, SIGKILL);
      if (pid > 0) waitpid(pid, nullptr, 0);
    }
  }
  TestGang(const TestGang&) = delete;
  TestGang& operator=(const TestGang&) = delete;

  pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }
  int line(int rank) const { return lines_[static_cast<std::size_t>(rank)]; }
  void Signal(int rank, int signal) { kill(pid(rank), signal); }
  // Of the worker, which ends by itself.
  int Await(int rank) {
    int status = 0;
    waitpid(pid(rank), &status, 0);
    pids_[static_cast<std::size_t>(rank)] = 0;
    return status;
  }
  void EndAll() {
    for (std::size_t i = 0; i < pids_.size(); ++i) {
      if (pids_[i] > 0) ReadLine(lines_[i]);
    }
    for (std::size_t i = 0; i < pids_.size(); ++i) {
      if (pids_[i] > 0) SendLine(lines_[i], "go");
    }
    AwaitAll();
  }
  void AwaitAll() {
    for (std::size_t i = 0; i < pids_.size(); ++i) {
      if (pids_[i] <= 0) continue;
      EXPECT_EQ(Await(static_cast<int>(i)), 0) << "worker " << i;
    }
  }

 private:
  [[noreturn]] static void Work(int rank, std::size_t size, int line, const MeshOptions& options,
                                const std::function<void(Worker&)>& body, bool connected) {
    {
      Worker worker;
      worker.rank = rank;
      worker.line = line;
      worker.inbox = std::make_unique<Inbox>();
      auto mesh = Mesh::Open(options, worker.inbox->Events());
      EXPECT_TRUE(mesh);
      if (!mesh) _exit(1);
      worker.mesh = std::move(*mesh);
      SendLine(line, EndpointLine(worker.mesh->self()));
      for (std::size_t i = 0; i < size; ++i) worker.all.push_back(ReadEndpoint(ReadLine(line)));
      for (const auto& peer : worker.all) {
        if (!connected || peer.id == worker.mesh->self().id) continue;
        const auto done = worker.mesh->Connect(peer);
        EXPECT_TRUE(done) << (done ? "" : done.error().message);
      }
      body(worker);
      worker.mesh.reset();
    }
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }

  std::vector<pid_t> pids_;
  std::vector<int> lines_;
};

}  // namespace muster::train
