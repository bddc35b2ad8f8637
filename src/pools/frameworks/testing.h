// For the tests of this room: gangs made in one line, and real processes with real environments.
//
// A Child has its output in a pipe, which is read until it closes: that is the event that a test
// waits for. A child that hangs is ended by CTest's time limit, through the process group.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/temp_folder.h"
#include "base/tree.h"
#include "pools/frameworks/setup.h"

namespace muster::pools::testing {

using Folder = TempFolder;

inline void Write(const std::string& path, const std::string& body, bool executable = false) {
  std::ofstream(path) << body;
  if (executable) std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

inline void WriteFiles(const WorkerSetup& setup, const std::string& folder) {
  for (const auto& file : setup.files) Write(folder + "/" + file.name, file.body, file.executable);
}

// The first of kPortsPerJob ports that are free on loopback now.
inline int FreePorts() {
  for (int base = 20'000 + static_cast<int>(getpid() % 1000) * 32; base < 60'000;
       base += kPortsPerJob) {
    int free = 0;
    for (int port = base; port < base + kPortsPerJob; ++port) {
      const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address.sin_port = htons(static_cast<std::uint16_t>(port));
      if (bind(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) ++free;
      close(socket_fd);
    }
    if (free == kPortsPerJob) return base;
  }
  ADD_FAILURE() << "no free ports";
  return 0;
}

struct Ended {
  int status = -1;  // of the exit; 128 + signal
  std::string output;
};

class Child {
 public:
  Child(const std::vector<std::string>& command, const std::map<std::string, std::string>& env,
        const std::string& folder) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) ADD_FAILURE() << "no pipe";
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
    std::map<std::string, std::string> all{
        {"PATH", "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"},
        {"HOME", folder},
        {"OMP_NUM_THREADS", "1"}};
    for (const auto& [name, value] : env) all[name] = value;
    std::vector<std::string> pairs;
    for (const auto& [name, value] : all) pairs.push_back(name + "=" + value);
    std::vector<char*> envp = Pointers(pairs);
    std::vector<std::string> words = command;
    std::vector<char*> argv = Pointers(words);
    const int failed = posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), envp.data());
    if (failed != 0) {
      pid_ = -1;
      ADD_FAILURE() << command.front() << ": " << std::strerror(failed);
    }
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = ends[0];
  }
  ~Child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (output_ >= 0) close(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void Signal(int number) const { kill(pid_, number); }

  // Waits for more output; false when it has ended.
  bool ReadMore() {
    std::array<char, 4096> buffer{};
    ssize_t got = 0;
    do {
      got = read(output_, buffer.data(), buffer.size());
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return false;
    read_.append(buffer.data(), static_cast<std::size_t>(got));
    return true;
  }

  bool Printed(const std::string& text) const { return read_.find(text) != std::string::npos; }

  // Reads until this has come; false when the output ended without it.
  bool Await(const std::string& text) {
    while (!Printed(text)) {
      if (!ReadMore()) return false;
    }
    return true;
  }

  Ended Wait() {
    while (ReadMore()) {
    }
    int status = 0;
    if (pid_ > 0) waitpid(pid_, &status, 0);
    const bool there = pid_ > 0;
    pid_ = -1;
    if (!there) return {-1, read_};
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_};
  }

 private:
  static std::vector<char*> Pointers(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  pid_t pid_ = -1;
  int output_ = -1;
  std::string read_;
};

inline Ended Run(const std::vector<std::string>& command,
                 const std::map<std::string, std::string>& env, const std::string& folder) {
  return Child(command, env, folder).Wait();
}

inline std::string Example(const std::string& name) { return SourceTree() + "/examples/" + name; }

// A job of one role `worker`, of so many workers at least and at most.
inline model::Job JobOf(model::Framework framework, int minimum, int maximum,
                        std::vector<std::string> command = {"true"}) {
  model::Job job;
  job.name = "test";
  job.queue = "team/a";
  job.framework = framework;
  job.command = std::move(command);
  job.groups = {{"root", -1, minimum, {}}};
  model::Role role;
  role.name = "worker";
  role.count = maximum;
  job.roles = {role};
  return job;
}

inline Member MemberAt(int rank, const std::string& node, int local_rank,
                       const std::string& role = "worker") {
  return {rank, role, rank, node, node, local_rank, 0, 0};
}

inline GangView GangOf(const model::Job& job, std::vector<Member> members, int port_base = 30'000) {
  return {"j17", job.name, job, std::move(members), port_base, 0, 0, "/run/muster/j17"};
}

// So many workers on this machine.
inline GangView LocalGang(const model::Job& job, int size, const std::string& job_dir) {
  std::vector<Member> members;
  for (int rank = 0; rank < size; ++rank) {
    members.push_back(MemberAt(rank, "here", rank));
    members.back().host = "127.0.0.1";
  }
  GangView gang = GangOf(job, std::move(members), FreePorts());
  gang.job_dir = job_dir;
  return gang;
}

// What the worker is started with; a refusal fails the test.
inline WorkerSetup Made(const GangView& gang, int rank) {
  auto setup = SetUpWorker(gang, rank);
  if (setup) return *setup;
  ADD_FAILURE() << Describe(setup.error());
  return {};
}

}  // namespace muster::pools::testing
