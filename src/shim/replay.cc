#include "shim/replay.h"

#include <algorithm>

#include "shim/queries.h"

namespace muster::shim {

void Replay::Keep(std::string_view bytes) {
  if (bytes.size() > most_bytes_) bytes.remove_prefix(bytes.size() - most_bytes_ - 1);
  const auto fresh = std::min(bytes.size(), most_bytes_ - ring_.size());
  ring_.append(bytes.substr(0, fresh));
  bytes.remove_prefix(fresh);
  while (!bytes.empty()) {
    const auto size = std::min(bytes.size(), ring_.size() - next_);
    ring_.replace(next_, size, bytes.substr(0, size));
    next_ = (next_ + size) % ring_.size();
    cut_ = true;
    bytes.remove_prefix(size);
  }
}

std::string Replay::Text() const {
  std::string text = ring_.substr(next_) + ring_.substr(0, next_);
  const auto line = cut_ ? text.find('\n') : std::string::npos;
  return WithoutQueries(line == std::string::npos ? text : text.substr(line + 1));
}

}  // namespace muster::shim
