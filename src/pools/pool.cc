#include "pools/pool.h"

#include <charconv>

namespace muster::pools {

std::string LaunchKey::Name() const {
  return std::to_string(job) + "." + std::to_string(worker) + "." + std::to_string(launch);
}

Result<LaunchKey> LaunchKey::Parse(std::string_view name) {
  LaunchKey key;
  const char* at = name.data();
  const char* end = at + name.size();
  const auto read = [&](auto& number, bool last) {
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || (last ? next != end : next == end || *next != '.')) return false;
    at = next + (last ? 0 : 1);
    return true;
  };
  if (read(key.job, false) && read(key.worker, false) && read(key.launch, true)) return key;
  return Fail(ErrorCode::kInvalid, "\"" + std::string(name) + "\" names no launch");
}

}  // namespace muster::pools
