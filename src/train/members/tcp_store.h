// TcpStore: a Store that a StoreServer keeps, on this host or another.
//
// A call takes at most the time-out. Within it a connection that broke is made again and the
// question asked again, which is harmless: a claim that was heard the first time finds its own
// value standing. Beyond it the call fails, and whoever cannot do without the store tries again as
// long as it likes. Threads may call at once; each has a connection to itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/members/sealed_line.h"
#include "train/members/store.h"
#include "train/members/store_message.h"

namespace muster::train {

struct TcpStoreOptions {
  std::string address;  // "10.0.0.1:41234"; a name is looked up whenever it is dialed
  std::string secret;   // of the job
  std::int64_t timeout_ms = 900;
};

class TcpStore final : public Store {
 public:
  // Until the store answers; what cannot change by waiting (another secret, no store) fails at
  // once, a store that is not there after `patience_ms`, or when `leave` becomes true.
  static Result<std::unique_ptr<TcpStore>> Open(const TcpStoreOptions& options,
                                                std::int64_t patience_ms,
                                                const std::atomic<bool>& leave);

  Result<std::string> Claim(const std::string& key, const std::string& value) override;
  Result<void> Write(const std::string& key, const std::string& value) override;
  Result<std::optional<std::string>> Read(const std::string& key) override;

  // The address of this host on the way to the store, without a port.
  const std::string& here() const { return here_; }

 private:
  using Line = std::unique_ptr<SealedLine>;

  explicit TcpStore(const TcpStoreOptions& options);

  StoreAnswer Ask(const StoreQuestion& question);
  Result<std::string> Exchange(SealedLine& line, const std::string& question,
                               std::int64_t deadline_ns) const;
  Result<Line> Take(std::int64_t deadline_ns);
  Result<Line> Dial(std::int64_t deadline_ns) const;

  TcpStoreOptions options_;
  Identity identity_;
  std::string here_;
  std::mutex mutex_;
  std::vector<Line> idle_;
};

}  // namespace muster::train
