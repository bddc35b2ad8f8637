#include "net/peers.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace muster::net {

std::string PeerKey(const std::optional<Peer>& peer, const std::string& remote) {
  if (peer) return fmt::format("uid {}", peer->uid);
  in6_addr six{};
  if (inet_pton(AF_INET6, remote.c_str(), &six) != 1) return remote;
  std::string out = "net ";
  for (int i = 0; i < 8; ++i) fmt::format_to(std::back_inserter(out), "{:02x}", six.s6_addr[i]);
  return out;
}

void Peers::Refill(Known& known, std::int64_t now_ms) {
  const std::int64_t passed_ms = std::max<std::int64_t>(now_ms - known.at_ms, 0);
  known.at_ms = now_ms;
  if (known.per_ms == 0 || passed_ms >= known.used / known.per_ms + 1) {
    known.used = 0;
  } else {
    known.used = std::max<std::int64_t>(known.used - passed_ms * known.per_ms, 0);
  }
}

bool Peers::Enter(const std::string& key, int most_connections, std::int64_t now_ms) {
  auto found = known_.find(key);
  if (found == known_.end()) {
    if (known_.size() >= kMostPeers) Sweep(now_ms);
    if (known_.size() >= kMostPeers) return false;
    found = known_.emplace(key, Known{.at_ms = now_ms}).first;
  }
  if (found->second.connections >= most_connections) return false;
  ++found->second.connections;
  return true;
}

void Peers::Leave(const std::string& key) {
  const auto found = known_.find(key);
  if (found == known_.end()) return;
  --found->second.connections;
  if (found->second.connections == 0 && found->second.used == 0) known_.erase(found);
}

std::int64_t Peers::Ask(const std::string& key, const RateLimit& rate, std::int64_t now_ms) {
  const auto found = known_.find(key);
  if (rate.per_minute <= 0 || found == known_.end()) return 0;
  auto& known = found->second;
  known.per_ms = rate.per_minute;
  Refill(known, now_ms);
  const std::int64_t over = known.used + kRequest - std::max(rate.burst, 1) * kRequest;
  if (over > 0) return (over + known.per_ms - 1) / known.per_ms;
  known.used += kRequest;
  return 0;
}

std::size_t Peers::Hold(const std::string& key, std::size_t bytes) {
  const auto found = known_.find(key);
  return found == known_.end() ? 0 : found->second.held_bytes += bytes;
}

void Peers::Drop(const std::string& key, std::size_t bytes) {
  if (const auto found = known_.find(key); found != known_.end()) found->second.held_bytes -= bytes;
}

void Peers::Sweep(std::int64_t now_ms) {
  for (auto entry = known_.begin(); entry != known_.end();) {
    Refill(entry->second, now_ms);
    const bool idle = entry->second.connections == 0 && entry->second.used == 0;
    entry = idle ? known_.erase(entry) : std::next(entry);
  }
}

}  // namespace muster::net
