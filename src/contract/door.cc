#include "contract/door.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "contract/fields.h"

namespace muster::contract {
namespace {

using nlohmann::json;

bool HasNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

json ToJson(const Attach& request) {
  return {{"type", "attach"}, {"rows", request.window.rows}, {"cols", request.window.cols}};
}
json ToJson(const Exec& request) {
  return {{"type", "exec"},
          {"command", request.command},
          {"terminal", request.terminal},
          {"rows", request.window.rows},
          {"cols", request.window.cols},
          {"env", request.env}};
}

void ReadWindow(Fields& fields, Window& window) {
  fields.Take("rows", window.rows);
  fields.Take("cols", window.cols);
  if (!IsWindow(window)) fields.Refuse("rows", "and cols must be 1 to 65535");
}

void ReadExec(Fields& fields, Exec& request) {
  fields.Need("command", request.command);
  fields.Take("terminal", request.terminal);
  fields.Take("env", request.env);
  ReadWindow(fields, request.window);
  if (request.command.empty() || request.command[0].empty()) {
    fields.Refuse("command", "names no program");
  }
  if (std::any_of(request.command.begin(), request.command.end(), HasNul)) {
    fields.Refuse("command", "holds a NUL character");
  }
  for (const auto& [name, value] : request.env) {
    if (name.empty() || name.find('=') != std::string::npos || HasNul(name) || HasNul(value)) {
      fields.Refuse("env", fmt::format("\"{}\" cannot be an environment variable", name));
    }
  }
}

}  // namespace

std::string Encode(const DoorRequest& request) {
  return Dump(std::visit([](const auto& wish) { return ToJson(wish); }, request)) + "\n";
}

Result<DoorRequest> DecodeDoorRequest(std::string_view line) {
  DoorRequest request;
  auto error = ReadObject("request", line, [&](Fields& fields) {
    std::string type;
    fields.Need("type", type);
    if (type == "attach") {
      ReadWindow(fields, request.emplace<Attach>().window);
    } else if (type == "exec") {
      ReadExec(fields, request.emplace<Exec>());
    } else {
      fields.Refuse("type", fmt::format("\"{}\" is neither attach nor exec", type));
    }
  });
  if (error) return tl::unexpected(*std::move(error));
  return request;
}

Result<int> ConnectDoor(const std::string& run_dir) {
  const int folder = open(run_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int made = folder < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int reason = made < 0 ? errno : 0;
  if (reason == 0) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    // By the folder's descriptor: a socket's path has 108 bytes, a folder's may be longer.
    const auto path = fmt::format("/proc/self/fd/{}/{}", folder, kDoor);
    std::memcpy(to.sun_path, path.c_str(), path.size() + 1);
    const auto* const address = reinterpret_cast<const sockaddr*>(&to);
    reason = connect(made, address, sizeof to) == 0 ? 0 : errno;
  }
  if (folder >= 0) close(folder);
  if (reason == 0) return made;
  if (made >= 0) close(made);
  const bool gone = reason == ENOENT || reason == ECONNREFUSED || reason == ENOTDIR;
  return Fail(gone ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
              fmt::format("cannot reach the shim in \"{}\": {}", run_dir, std::strerror(reason)),
              gone ? "its worker has ended" : "try again");
}

}  // namespace muster::contract
