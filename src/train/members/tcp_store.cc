#include "train/members/tcp_store.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "train/mesh/address.h"
#include "train/mesh/socket.h"

namespace muster::train {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kPauseMs = 20;  // before a store that is away is tried again

bool MayPass(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
}

void Pause() { std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs)); }

// What has not arrived by now shall not arrive later, when somebody else may have been first.
void Forget(int fd) {
  const linger at_once{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace

TcpStore::TcpStore(const TcpStoreOptions& options)
    : options_(options), identity_(StoreIdentity(kStoreClientId, options.secret)) {}

Result<std::unique_ptr<TcpStore>> TcpStore::Open(const TcpStoreOptions& options,
                                                 std::int64_t patience_ms,
                                                 const std::atomic<bool>& leave) {
  std::unique_ptr<TcpStore> store(new TcpStore(options));
  const std::int64_t end_ns = NowNs() + patience_ms * kMs;
  while (true) {
    auto line = store->Dial(NowNs() + options.timeout_ms * kMs);
    if (line) {
      store->here_ = OwnAddress((*line)->fd()).host;
      store->idle_.push_back(std::move(*line));
      return store;
    }
    if (!MayPass(line.error()) || NowNs() >= end_ns || leave) return tl::unexpected(line.error());
    Pause();
  }
}

Result<std::string> TcpStore::Claim(const std::string& key, const std::string& value) {
  auto answer = Ask({StoreQuestion::Kind::kClaim, key, value});
  if (!answer) return tl::unexpected(answer.error());
  if (!*answer) return Fail(ErrorCode::kInvalid, "the store does not say what was claimed");
  return std::move(**answer);
}

Result<void> TcpStore::Write(const std::string& key, const std::string& value) {
  const auto answer = Ask({StoreQuestion::Kind::kWrite, key, value});
  if (!answer) return tl::unexpected(answer.error());
  return {};
}

Result<std::optional<std::string>> TcpStore::Read(const std::string& key) {
  return Ask({StoreQuestion::Kind::kRead, key, {}});
}

StoreAnswer TcpStore::Ask(const StoreQuestion& question) {
  const auto bytes = Encode(question);
  if (!bytes) return tl::unexpected(bytes.error());
  const std::int64_t deadline_ns = NowNs() + options_.timeout_ms * kMs;
  while (true) {
    auto line = Take(deadline_ns);
    Result<std::string> answer = line ? Exchange(**line, *bytes, deadline_ns)
                                      : Result<std::string>(tl::unexpected(line.error()));
    if (answer) {
      const std::lock_guard lock(mutex_);
      idle_.push_back(std::move(*line));
      return DecodeAnswer(*answer);
    }
    if (!MayPass(answer.error()) || NowNs() + kPauseMs * kMs >= deadline_ns) {
      return tl::unexpected(answer.error());
    }
    Pause();
  }
}

Result<std::string> TcpStore::Exchange(SealedLine& line, const std::string& question,
                                       std::int64_t deadline_ns) const {
  using Step = SealedLine::Step;
  std::string answer;
  line.Put(question);
  for (bool sent = false;;) {
    const Step step = sent ? line.Read(answer) : line.Flush();
    if (step == Step::kDone && sent) return answer;
    if (step == Step::kOver) {
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("the store at {} closed the connection", options_.address),
                  "its process may have ended: start it again, with the same folder");
    }
    sent = sent || step == Step::kDone;
    if (step == Step::kMore && !AwaitSocket(line.fd(), sent ? POLLIN : POLLOUT, deadline_ns)) {
      Forget(line.fd());
      return Fail(ErrorCode::kTimeout,
                  fmt::format("the store at {} does not answer", options_.address),
                  "it may be cut off; a longer time-out waits longer");
    }
  }
}

// One that is there, if it has not ended in the meantime.
Result<TcpStore::Line> TcpStore::Take(std::int64_t deadline_ns) {
  {
    const std::lock_guard lock(mutex_);
    while (!idle_.empty()) {
      Line line = std::move(idle_.back());
      idle_.pop_back();
      if (!AwaitSocket(line->fd(), POLLIN, 0))
        return line;  // nothing is to be read, not even the end
    }
  }
  return Dial(deadline_ns);
}

Result<TcpStore::Line> TcpStore::Dial(std::int64_t deadline_ns) const {
  const auto address = ResolveAddress(options_.address);
  if (!address) return tl::unexpected(address.error());
  Endpoint server;
  server.id = kStoreId;
  server.address = *address;
  auto trusted = DialPeer(identity_, server, false, deadline_ns);
  if (!trusted) return tl::unexpected(trusted.error());
  return std::make_unique<SealedLine>(std::move(*trusted));
}

}  // namespace muster::train
