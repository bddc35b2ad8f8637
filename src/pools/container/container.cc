#include "pools/container/container.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <system_error>

namespace muster::pools {
namespace {

using Words = std::vector<std::string>;

tl::unexpected<Error> NoEngine(const ContainerOptions& options) {
  return Fail(ErrorCode::kUnavailable,
              fmt::format("image {} cannot be run: neither podman nor apptainer is installed on "
                          "this node",
                          options.image),
              "install podman there (Debian: apt install podman catatonit), or drop `image`");
}

Result<void> CheckOptions(const ContainerOptions& options) {
  // A word that begins with a dash would be read as an option of the engine.
  if (options.image.empty() || options.image.starts_with('-')) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("\"{}\" is not the name of an image", options.image),
                "write it like docker.io/library/debian:12");
  }
  for (const Mount& mount : options.mounts) {
    const std::string& target = mount.target.empty() ? mount.source : mount.target;
    for (const std::string& path : {mount.source, target}) {
      if (!path.starts_with('/') || path.find_first_of(":,") != std::string::npos) {
        return Fail(ErrorCode::kInvalid, fmt::format("\"{}\" cannot be mounted", path),
                    "use an absolute path without colon and comma");
      }
    }
  }
  if (options.workdir.empty()) return {};
  if (!options.workdir.starts_with('/') ||
      options.workdir.find_first_of(":,") != std::string::npos) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("workdir \"{}\" cannot be mounted into an image", options.workdir),
                "use an absolute path without colon and comma");
  }
  return {};
}

std::string MountText(const Mount& mount) {
  return fmt::format("{}:{}{}", mount.source, mount.target.empty() ? mount.source : mount.target,
                     mount.read_only ? ":ro" : "");
}

// What the engine itself goes by; these must not be changed for it.
bool IsReadByEngine(std::string_view name) {
  constexpr std::array<std::string_view, 9> kNames{"PATH",          "HOME",       "TMPDIR",
                                                   "USER",          "LOGNAME",    "GOTRACEBACK",
                                                   "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID"};
  constexpr std::array<std::string_view, 11> kPrefixes{
      "LD_",     "XDG_",     "DBUS_",       "CONTAINER", "STORAGE_", "PODMAN",
      "BUILDAH", "REGISTRY", "_CONTAINERS", "GODEBUG",   "SSL_CERT_"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

ContainerLaunch Podman(const std::string& program, const ContainerOptions& options,
                       std::map<std::string, std::string> env, const FindProgram& find) {
  ContainerLaunch launch;
  Words& line = launch.command;
  line.push_back(program);
  line.insert(line.end(), options.engine.begin(), options.engine.end());
  line.insert(line.end(),
              {"run", "--rm", "--name", options.name, "--network", "host", "--ipc", "host",
               "--cgroups", "disabled", "--log-driver", "none", "--security-opt", "label=disable"});
  // As process 1 a program without handlers would ignore SIGTERM and collect no orphans.
  if (find("catatonit")) line.emplace_back("--init");
  if (options.terminal) line.insert(line.end(), {"--interactive", "--tty"});
  if (!options.workdir.empty()) {
    line.insert(line.end(), {"--workdir", options.workdir, "--volume",
                             MountText({options.workdir, {}, false})});
  }
  for (const Mount& mount : options.mounts) {
    line.insert(line.end(), {"--volume", MountText(mount)});
  }
  for (int device = 0; device < 64; ++device) {
    if ((options.devices >> device & 1U) == 0) continue;
    line.insert(line.end(), {"--device", fmt::format("nvidia.com/gpu={}", device)});
  }
  if (options.devices != 0 && env.contains("CUDA_VISIBLE_DEVICES")) {
    // Inside there are only these, counted from 0.
    std::string inside;
    for (int i = 0; i < std::popcount(options.devices); ++i) {
      inside += fmt::format("{}{}", i == 0 ? "" : ",", i);
    }
    env["CUDA_VISIBLE_DEVICES"] = inside;
  }
  // Set by the shim, so known here by name only; the engine leaves out what is not set.
  line.insert(line.end(), {"--env", "MUSTER_SOCKET"});
  for (const auto& [name, value] : env) {
    line.emplace_back("--env");
    if (IsReadByEngine(name)) {
      line.push_back(fmt::format("{}={}", name, value));
    } else {
      line.push_back(name);
      launch.env[name] = value;
    }
  }
  line.insert(line.end(), options.extra.begin(), options.extra.end());
  line.push_back(options.image);
  return launch;
}

ContainerLaunch Apptainer(const std::string& program, const ContainerOptions& options,
                          const std::map<std::string, std::string>& env, bool has_command) {
  ContainerLaunch launch;
  Words& line = launch.command;
  line.push_back(program);
  line.insert(line.end(), options.engine.begin(), options.engine.end());
  line.emplace_back(has_command ? "exec" : "run");
  // All GPUs of the machine: CUDA_VISIBLE_DEVICES keeps its meaning.
  if (options.devices != 0) line.emplace_back("--nv");
  if (!options.workdir.empty()) {
    line.insert(line.end(),
                {"--pwd", options.workdir, "--bind", MountText({options.workdir, {}, false})});
  }
  for (const Mount& mount : options.mounts) {
    line.insert(line.end(), {"--bind", MountText(mount)});
  }
  line.insert(line.end(), options.extra.begin(), options.extra.end());
  // A plain name is an image of a registry, as for podman; a path or a scheme is what it says.
  const bool is_path = options.image.starts_with('/') || options.image.starts_with('.') ||
                       options.image.ends_with(".sif") ||
                       options.image.find("://") != std::string::npos;
  line.push_back(is_path ? options.image : "docker://" + options.image);
  // It hands its own environment on, but for what it goes by itself.
  for (const auto& [name, value] : env) {
    launch.env[IsReadByEngine(name) ? "APPTAINERENV_" + name : name] = value;
  }
  return launch;
}

}  // namespace

FindProgram ProgramsIn(std::string path) {
  return [path = std::move(path)](std::string_view name) -> std::optional<std::string> {
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find(':', begin), path.size());
      const std::string folder = path.substr(begin, end - begin);
      begin = end + 1;
      if (folder.empty()) continue;  // the folder one happens to be in: nobody means that here
      const std::filesystem::path file = std::filesystem::path(folder) / name;
      std::error_code error;
      if (std::filesystem::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0) {
        return file.string();
      }
    }
    return std::nullopt;
  };
}

Result<ContainerLaunch> ContainerCommand(const ContainerOptions& options,
                                         const std::vector<std::string>& command,
                                         const std::map<std::string, std::string>& env,
                                         const FindProgram& find) {
  if (auto sound = CheckOptions(options); !sound) return tl::unexpected(sound.error());
  ContainerLaunch launch;
  if (const auto podman = find("podman")) {
    launch = Podman(*podman, options, env, find);
  } else if (const auto apptainer = find("apptainer")) {
    launch = Apptainer(*apptainer, options, env, !command.empty());
  } else {
    return NoEngine(options);
  }
  launch.command.insert(launch.command.end(), command.begin(), command.end());
  return launch;
}

std::vector<std::string> ContainerExec(const ContainerOptions& options, bool terminal,
                                       const FindProgram& find) {
  const auto podman = find("podman");
  if (!podman) return {};  // Apptainer's processes are as good as the machine's own
  Words line{*podman};
  line.insert(line.end(), options.engine.begin(), options.engine.end());
  line.insert(line.end(), {"exec", "--interactive"});
  if (terminal) line.emplace_back("--tty");
  line.push_back(options.name);
  return line;
}

Result<std::vector<std::string>> ContainerRemoval(const ContainerOptions& options,
                                                  const FindProgram& find) {
  if (const auto podman = find("podman")) {
    Words line{*podman};
    line.insert(line.end(), options.engine.begin(), options.engine.end());
    line.insert(line.end(), {"rm", "--force", "--ignore", "--time", "0", options.name});
    return line;
  }
  if (find("apptainer")) return Words{};
  return NoEngine(options);
}

}  // namespace muster::pools
