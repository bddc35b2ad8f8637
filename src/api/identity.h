// Identity: who calls, found out on the server's thread before anything of a body is kept.
//
// Over the Unix socket it is what the kernel says of the other end, over TCP whom the token was
// made for. Names, groups and accounts come from the account database and are remembered for a
// minute, since that may be a server elsewhere; where it gives no answer nobody is let in. The
// book of tokens follows the journal; expiry is judged by the controller, whose clock counts.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "control/access.h"
#include "net/http.h"

namespace muster::api {

struct Identity {
  control::Caller caller;
  std::string token;  // its id; empty: known by the socket
};

// Thread-safe.
class TokenBook {
 public:
  void Fill(const state::State& state);
  void Follow(const state::State& state, const model::EventBody& body);
  // The token that a header "Bearer ..." shows, where it is one of ours.
  Result<state::TokenRecord> Find(const std::string& header) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, state::TokenRecord> tokens_;  // by id
};

// On the server's thread, and only there.
class Accounts {
 public:
  explicit Accounts(const TokenBook& book) : book_(book) {}
  Result<Identity> Of(const net::Request& request, std::int64_t now_ms);

 private:
  struct Known {
    Result<control::Caller> caller;
    std::int64_t until_ms = 0;
  };
  template <typename Key, typename LookUp>
  Result<control::Caller> Remember(std::map<Key, Known>& known, const Key& key, std::int64_t now_ms,
                                   const LookUp& look_up);

  const TokenBook& book_;
  std::map<std::uint32_t, Known> by_uid_;
  std::map<std::string, Known> by_name_;
};

// 401: the caller is nobody; says how to become somebody.
tl::unexpected<Error> Nobody(const std::string& why);

}  // namespace muster::api
