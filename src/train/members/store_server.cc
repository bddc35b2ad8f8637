#include "train/members/store_server.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/check.h"
#include "train/mesh/address.h"

namespace muster::train {
namespace {

constexpr std::int64_t kMs = 1'000'000;
// Whoever has been quiet for longest makes room and dials again when it has something to ask, so
// these bound what is kept here and not the workers of a job.
constexpr std::size_t kMostClients = 512;
constexpr std::int64_t kMostQuietMs = 60'000;
constexpr std::int64_t kMostWaitMs = 1000;

// Beside the keys, none of which begins with a dot.
constexpr const char* kAddressKey = ".address";

// Where it was the last time, if that was on this address; else on any port.
Result<Listening> ListenAgain(FolderStore& store, const std::string& address) {
  if (!SplitAddress(address).port.empty()) return ListenTcp(address);
  const auto before = store.Read(kAddressKey);
  if (before && *before && SplitAddress(**before).host == SplitAddress(address).host) {
    auto again = ListenTcp(**before);
    if (again) return again;
  }
  return ListenTcp(address);
}

std::vector<Entrance> OneEntrance(Fd listener) {
  std::vector<Entrance> out;
  out.push_back({std::move(listener), false});
  return out;
}

}  // namespace

Result<std::unique_ptr<StoreServer>> StoreServer::Open(const StoreServerOptions& options) {
  if (options.secret.empty()) {
    return Fail(ErrorCode::kInvalid, "the job has no secret", "give 16 random bytes or more");
  }
  FolderStore store(options.folder);
  auto listening = ListenAgain(store, options.address);
  if (!listening) return tl::unexpected(listening.error());
  if (auto kept = store.Write(kAddressKey, listening->address); !kept) {
    return tl::unexpected(kept.error());
  }
  return std::unique_ptr<StoreServer>(new StoreServer(options, std::move(*listening)));
}

StoreServer::StoreServer(const StoreServerOptions& options, Listening listening)
    : store_(options.folder, true),
      identity_(StoreIdentity(kStoreId, options.secret)),
      address_(std::move(listening.address)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      reception_(identity_, epoll_.get(), options.timeout_ms * kMs,
                 OneEntrance(std::move(listening.fd))) {
  MUSTER_CHECK(epoll_ && wake_, "the system has file descriptors left");
  Watch(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), EPOLLIN);
  // Signals are for the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

StoreServer::~StoreServer() {
  stop_ = true;
  const std::uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof one));
  thread_.join();
}

void StoreServer::Run() {
  std::array<epoll_event, 64> events{};
  while (!stop_) {
    const int count =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), WaitMs(NowNs()));
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      const bool stranger = reception_.Serve(fd, [this](Greeter& greeter) { Admit(greeter); });
      if (!stranger && clients_.contains(fd)) Serve(fd);
    }
    Tick(NowNs());
  }
}

int StoreServer::WaitMs(std::int64_t now_ns) const {
  const std::int64_t until_ns = reception_.OverAtNs(now_ns + kMostWaitMs * kMs);
  return static_cast<int>(std::max<std::int64_t>(0, (until_ns - now_ns + kMs - 1) / kMs));
}

void StoreServer::Admit(Greeter& greeter) {
  auto trusted = greeter.Welcome();
  if (!trusted) return;
  if (clients_.size() >= kMostClients) {
    clients_.erase(std::ranges::min_element(
        clients_, {}, [](const auto& entry) { return entry.second.heard_ns; }));
  }
  const int fd = trusted->fd.get();
  clients_.emplace(fd, Client{SealedLine(std::move(*trusted)), NowNs()});
  Watch(epoll_.get(), EPOLL_CTL_ADD, fd, EPOLLIN);
}

// What a client asks is read only when it has taken the answer before, so that what is kept for one
// stays small.
void StoreServer::Serve(int fd) {
  auto& client = clients_.at(fd);
  client.heard_ns = NowNs();
  while (true) {
    auto step = client.line.Flush();
    if (step == SealedLine::Step::kMore) {
      Watch(epoll_.get(), EPOLL_CTL_MOD, fd, EPOLLOUT);
      return;
    }
    std::string question;
    if (step == SealedLine::Step::kDone) step = client.line.Read(question);
    if (step == SealedLine::Step::kOver) {
      clients_.erase(fd);
      return;
    }
    if (step == SealedLine::Step::kMore) {
      Watch(epoll_.get(), EPOLL_CTL_MOD, fd, EPOLLIN);
      return;
    }
    client.line.Put(Answer(question));
  }
}

std::string StoreServer::Answer(const std::string& bytes) {
  const auto question = DecodeQuestion(bytes);
  if (!question) return Encode(StoreAnswer(tl::unexpected(question.error())));
  StoreAnswer answer;
  switch (question->kind) {
    case StoreQuestion::Kind::kClaim:
      answer = store_.Claim(question->key, question->value);
      break;
    case StoreQuestion::Kind::kWrite:
      if (auto done = store_.Write(question->key, question->value); !done) {
        answer = tl::unexpected(done.error());
      }
      break;
    case StoreQuestion::Kind::kRead:
      answer = store_.Read(question->key);
      break;
  }
  if (answer && *answer && (*answer)->size() > kMostValueBytes) {
    answer =
        Fail(ErrorCode::kInvalid, fmt::format("the value of \"{}\" is too large", question->key));
  }
  return Encode(answer);
}

void StoreServer::Tick(std::int64_t now_ns) {
  reception_.HangUp(now_ns);
  std::erase_if(clients_, [&](const auto& entry) {
    return now_ns - entry.second.heard_ns > kMostQuietMs * kMs;
  });
  reception_.ListenAgain();
}

}  // namespace muster::train
