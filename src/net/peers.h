// Peers: how many connections each one has, and how fast it asks.
//
// A peer is a user of this machine, an IPv4 address, or a /64 of IPv6, which is what one machine is
// given. A bucket holds `burst` requests and is refilled at `per_minute`; only peers with a
// connection or a bucket that is not full are kept, and never more than kMostPeers. Times are
// handed in; integers only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "net/http.h"

namespace muster::net {

struct RateLimit {
  int per_minute = 0;  // 0: no limit
  int burst = 0;
};

std::string PeerKey(const std::optional<Peer>& peer, const std::string& remote);

class Peers {
 public:
  static constexpr std::size_t kMostPeers = std::size_t{1} << 16;

  // False: it has as many connections as it may, and this one does not count.
  bool Enter(const std::string& key, int most_connections, std::int64_t now_ms);
  void Leave(const std::string& key);

  // 0: it may ask, and that was counted. Otherwise the milliseconds until it may.
  std::int64_t Ask(const std::string& key, const RateLimit& rate, std::int64_t now_ms);

  // Bytes that are held for a peer with a connection; returns how many those are now.
  std::size_t Hold(const std::string& key, std::size_t bytes);
  void Drop(const std::string& key, std::size_t bytes);

  // Forgets those of whom nothing needs to be known.
  void Sweep(std::int64_t now_ms);
  std::size_t size() const { return known_.size(); }

 private:
  struct Known {
    int connections = 0;
    std::size_t held_bytes = 0;
    std::int64_t used = 0;  // of the bucket, a request is kRequest
    std::int64_t per_ms = 0;
    std::int64_t at_ms = 0;
  };
  static constexpr std::int64_t kRequest = 60'000;  // so that the refill of a millisecond is whole

  static void Refill(Known& known, std::int64_t now_ms);

  std::unordered_map<std::string, Known> known_;
};

}  // namespace muster::net
