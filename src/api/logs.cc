#include "api/logs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace muster::api {
namespace {

using control::Controller;
using control::Service;

constexpr int kFollowMs = 100;
constexpr std::size_t kPiece = std::size_t{256} << 10;
constexpr std::int64_t kLongestTail = std::int64_t{64} << 20;

class Follower : public std::enable_shared_from_this<Follower> {
 public:
  Follower(Service& service, net::HttpServer* server, Call call, model::JobNumber job,
           std::string path, bool follow)
      : service_(service),
        server_(server),
        call_(std::move(call)),
        job_(job),
        path_(std::move(path)),
        follow_(follow) {}
  ~Follower() {
    if (file_ >= 0) ::close(file_);
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  void Begin(std::int64_t tail) {
    call_.exchange->BeginStream(200, "application/octet-stream");
    Open();
    if (tail >= 0 && file_ >= 0) SeekTail(tail);
    Step(false);
  }

 private:
  void Open() { file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC); }

  // To where the last `lines` lines begin.
  void SeekTail(std::int64_t lines) {
    const auto size = ::lseek(file_, 0, SEEK_END);
    auto at = size;
    std::int64_t seen = 0;
    std::string piece(64 << 10, '\0');
    while (at > 0 && size - at < kLongestTail) {
      const auto want = std::min<std::int64_t>(at, static_cast<std::int64_t>(piece.size()));
      if (::pread(file_, piece.data(), static_cast<std::size_t>(want), at - want) != want) break;
      for (auto i = want; i-- > 0;) {
        const bool last = at - want + i == size - 1;
        if (piece[static_cast<std::size_t>(i)] == '\n' && !last && ++seen == lines) {
          ::lseek(file_, at - want + i + 1, SEEK_SET);
          return;
        }
      }
      at -= want;
    }
    ::lseek(file_, lines == 0 ? size : at, SEEK_SET);
  }

  bool Rotated() const {
    struct stat here {
    }, named{};
    if (::fstat(file_, &here) != 0 || ::stat(path_.c_str(), &named) != 0) return false;
    return here.st_ino != named.st_ino;
  }

  // Sends what is there. True: all of it is sent.
  bool SendAll() {
    for (;;) {
      if (file_ < 0) Open();
      if (file_ < 0) return true;
      if (call_.exchange->Queued() > 4 * kPiece) return false;
      std::string piece(kPiece, '\0');
      const auto got = ::read(file_, piece.data(), piece.size());
      if (got > 0) {
        piece.resize(static_cast<std::size_t>(got));
        if (!call_.exchange->Write(std::move(piece))) return true;
        continue;
      }
      if (!Rotated()) return true;
      ::close(file_);
      file_ = -1;
    }
  }

  void Step(bool ended) {
    if (call_.exchange->gone()) return call_.exchange->Finish();
    const bool all = SendAll();
    if (all && (ended || !follow_)) return call_.exchange->Finish();
    // Whether it has ended is asked before the next look at the file, so that nothing is missed.
    auto self = shared_from_this();
    server_->After(kFollowMs, [self] {
      self->service_.Read([self](Controller& control) {
        const auto* job = control.state().Find(self->job_);
        const bool done = job == nullptr || job->ending.has_value();
        self->server_->Post([self, done] { self->Step(done); });
      });
    });
  }

  Service& service_;
  net::HttpServer* server_;
  Call call_;
  model::JobNumber job_;
  std::string path_;
  bool follow_;
  int file_ = -1;
};

}  // namespace

void StreamLogs(Service& service, net::HttpServer* server, const Call& call) {
  if (server == nullptr) {
    return ReplyError(*call.exchange, {ErrorCode::kUnavailable, "still starting", "try again"});
  }
  service.Read([&service, server, call](Controller& control) {
    const auto fail = [&](const Error& error) { ReplyError(*call.exchange, error); };
    auto id = control.Resolve(call.words[1], call.user);
    if (!id) return fail(id.error());
    if (const auto* array = control.state().FindArray(*id)) {
      return fail({ErrorCode::kInvalid, "job " + std::to_string(*id) + " is an array",
                   "name one of its tasks: " + array->spec->name + "[0]"});
    }
    const auto worker = static_cast<std::uint32_t>(call.Number("worker", 0));
    std::string node;
    if (const auto* job = control.state().Find(*id); job != nullptr) {
      if (worker < job->workers.size()) node = job->workers[worker].node;
      if (!job->workers.empty() && worker >= job->workers.size()) {
        return fail({ErrorCode::kNotFound,
                     "job " + std::to_string(*id) + " has " + std::to_string(job->workers.size()) +
                         " workers, numbered from 0",
                     ""});
      }
    }
    if (node.empty() && !control.state().nodes().empty()) {
      node = control.state().nodes().begin()->first;
    }
    pools::Pool* pool = control.PoolOf(node);
    const std::string path = pool == nullptr ? "" : pool->LogPath(*id, worker, call.Flag("err"));
    if (path.empty()) {
      return fail({ErrorCode::kNotFound, "job " + std::to_string(*id) + " has no output here",
                   "workers of a simulated pool write none"});
    }
    const auto tail = call.Text("tail").empty() ? -1 : call.Number("tail", -1);
    auto follower =
        std::make_shared<Follower>(service, server, call, *id, path, call.Flag("follow"));
    server->Post([follower, tail] { follower->Begin(tail); });
  });
}

}  // namespace muster::api
