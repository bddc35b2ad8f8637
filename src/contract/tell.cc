#include "contract/tell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "contract/fields.h"
#include "contract/order.h"
#include "contract/signals.h"

namespace muster::contract {
namespace {

constexpr std::array<std::string_view, 5> kKinds = {"stop", "kill", "signal", "message", "show"};

void CheckMessage(Fields& fields, std::string& message) {
  if (fields.failed()) return;
  const auto first = message.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || message[first] != '{' || !nlohmann::json::accept(message)) {
    return fields.Refuse("message", "must be a JSON object");
  }
  // Inside a JSON string a newline is always escaped, so what is left of them is white space.
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::replace(message.begin(), message.end(), '\r', ' ');
}

}  // namespace

std::string Encode(const Tell& tell) {
  nlohmann::json out = {{"version", kContractVersion},
                        {"kind", kKinds.at(static_cast<std::size_t>(tell.kind))}};
  if (tell.kind == Tell::Kind::kStop) {
    out["grace_ms"] = tell.grace_ms;
    if (tell.leave) out["leave"] = true;
  }
  if (tell.kind == Tell::Kind::kSignal) out["signal"] = tell.signal;
  if (tell.kind == Tell::Kind::kMessage) out["message"] = tell.message;
  if (tell.kind == Tell::Kind::kShow) out["text"] = tell.text;
  return Dump(out);
}

Result<Tell> DecodeTell(std::string_view text) {
  Tell tell;
  auto error = ReadObject("tell", text, [&](Fields& fields) {
    fields.Version(kContractVersion);
    std::string kind;
    fields.Need("kind", kind);
    const auto* const found = std::find(kKinds.begin(), kKinds.end(), kind);
    if (found == kKinds.end()) return fields.Refuse("kind", fmt::format("\"{}\" is none", kind));
    tell.kind = static_cast<Tell::Kind>(found - kKinds.begin());
    if (tell.kind == Tell::Kind::kStop) {
      fields.Take("grace_ms", tell.grace_ms);
      fields.Take("leave", tell.leave);
      if (tell.grace_ms < -1) fields.Refuse("grace_ms", "must be -1 or more");
    } else if (tell.kind == Tell::Kind::kSignal) {
      fields.Need("signal", tell.signal);
      if (!SignalNumber(tell.signal)) {
        fields.Refuse("signal", fmt::format("\"{}\" is no signal", tell.signal));
      }
    } else if (tell.kind == Tell::Kind::kMessage) {
      fields.Need("message", tell.message);
      CheckMessage(fields, tell.message);
    } else if (tell.kind == Tell::Kind::kShow) {
      fields.Need("text", tell.text);
    }
  });
  if (error) return tl::unexpected(*std::move(error));
  return tell;
}

Result<void> SendTell(const std::string& run_dir, const Tell& tell) {
  const std::string text = Encode(tell);
  if (text.size() > kLargestTell) {
    return Fail(ErrorCode::kInvalid, fmt::format("a message of {} bytes is too long", text.size()),
                fmt::format("the most is {}", kLargestTell));
  }
  const int folder = open(run_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int from = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int reason = folder < 0 || from < 0 ? errno : 0;
  if (reason == 0) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    // By the folder's descriptor: a socket's path has 108 bytes, a folder's may be longer.
    const auto path = fmt::format("/proc/self/fd/{}/ctl", folder);
    std::memcpy(to.sun_path, path.c_str(), path.size() + 1);
    const auto sent = sendto(from, text.data(), text.size(), MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&to), sizeof to);
    reason = sent < 0 ? errno : 0;
  }
  if (folder >= 0) close(folder);
  if (from >= 0) close(from);
  if (reason == 0) return {};
  const bool gone = reason == ENOENT || reason == ECONNREFUSED || reason == ENOTDIR;
  return Fail(gone ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
              fmt::format("cannot reach the shim in \"{}\": {}", run_dir, std::strerror(reason)),
              gone ? "its worker has ended" : "try again");
}

}  // namespace muster::contract
