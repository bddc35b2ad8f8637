// Identity: who calls, found out on the server's thread before anything of a body is kept.
//
// Over the Unix socket it is what the kernel says of the other end, over TCP whom the token was
// made for. Names, groups and accounts come from the account database and are remembered for a
// minute, since that may be a server elsewhere; where it gives no answer nobody is let in. The
// book of tokens follows the journal; expiry is judged by the controller, whose clock counts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "api/worker.h"
#include "base/clock.h"
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

// On the server's thread, and only there. What is not remembered is asked on a thread of its own:
// the account database may be slow or gone, and others are served meanwhile.
class Accounts {
 public:
  using Key = std::variant<std::uint32_t, std::string>;  // a uid of this machine, or a name
  // Hands a task to the server's thread; from any thread, also when the server is closing.
  using Post = std::function<void(std::function<void()>)>;

  using LookUp = std::function<Result<control::Caller>(const Key&)>;
  static Result<control::Caller> LookUpAccount(const Key& key);

  // `look_up` asks the account database; another thread calls it.
  Accounts(const TokenBook& book, Clock& clock, Post post, LookUp look_up = LookUpAccount);
  // None: the account has to be asked for first.
  Result<std::optional<Identity>> Of(const net::Request& request) const;
  // Then calls `then`, when Of() knows the answer. Refuses when too many wait.
  Result<void> Ask(const net::Request& request, std::function<void()> then);

 private:
  struct Known {
    Result<control::Caller> caller;
    std::int64_t until_ms = 0;
  };
  struct Asking;
  Result<Asking> Read(const net::Request& request) const;
  void Learn(const Key& key, Result<control::Caller> caller);
  std::int64_t NowMs() const { return clock_.MonotonicNs() / 1'000'000; }

  const TokenBook& book_;
  Clock& clock_;
  Post post_;
  LookUp look_up_;
  std::map<Key, Known> known_;
  std::map<Key, std::vector<std::function<void()>>> waiting_;
  std::size_t waiters_ = 0;
  Worker asker_;
};

// 401: the caller is nobody; says how to become somebody.
tl::unexpected<Error> Nobody(const std::string& why);

}  // namespace muster::api
