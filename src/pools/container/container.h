// Containers: the command line that runs a worker inside its job's `image`.
//
// Podman where it is installed, else Apptainer. The container shares the machine's network and IPC,
// because the members of a gang reach each other there, and makes no cgroup of its own, so that the
// limits and the accounts of the worker's shim hold inside it. Values of the environment are handed
// on by name: a command line can be read by everybody on the machine. Pure but for `find`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::pools {

struct Mount {
  std::string source;
  std::string target;  // empty: the same path
  bool read_only = false;
};

struct ContainerOptions {
  std::string image;
  std::string name;     // unique on the machine: the launch's
  std::string workdir;  // mounted at the same path; empty: the image's own
  std::vector<Mount> mounts;
  std::uint64_t devices = 0;        // real GPUs of the node, by index
  bool terminal = false;            // the worker has one
  std::vector<std::string> engine;  // the pool's own, before `run`: --root, --runtime
  std::vector<std::string> extra;   // the pool's own, after ours, so that they win
};

struct ContainerLaunch {
  std::vector<std::string> command;
  std::map<std::string, std::string>
      env;  // of the process that runs `command`, beside PATH and HOME
};

// The path of a program, if it is there.
using FindProgram = std::function<std::optional<std::string>(std::string_view)>;

// Looks in the folders of `path`, as in PATH.
FindProgram ProgramsIn(std::string path);

// The command runs in the foreground; signals sent to it reach the worker, its exit status is the
// worker's (125 to 127: the container could not be started). Podman drops a signal that comes
// before it listens, in the first moments of the worker.
Result<ContainerLaunch> ContainerCommand(const ContainerOptions& options,
                                         const std::vector<std::string>& command,
                                         const std::map<std::string, std::string>& env,
                                         const FindProgram& find);

// What is put before a command so that it runs inside the container of a running worker.
std::vector<std::string> ContainerExec(const ContainerOptions& options, bool terminal,
                                       const FindProgram& find);

// Ends and removes the container after its launcher was killed. Nothing to do for Apptainer, whose
// processes are the launcher's own: an empty command.
Result<std::vector<std::string>> ContainerRemoval(const ContainerOptions& options,
                                                  const FindProgram& find);

}  // namespace muster::pools
