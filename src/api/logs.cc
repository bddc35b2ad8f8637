#include "api/logs.h"

#include <algorithm>
#include <optional>

#include "api/jobs.h"
#include "api/log_reader.h"
#include "model/fields.h"
#include "net/base64.h"

namespace muster::api {
namespace {

using control::Service;

constexpr int kFollowMs = 100;
constexpr int kKeepAliveMs = 15'000;
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
constexpr std::size_t kQueueBytes = std::size_t{4} << 20;  // what may wait for the reader
constexpr std::size_t kTurnBytes = std::size_t{2} << 20;   // before others get their turn

struct LogQuery {
  std::uint32_t worker = 0;
  bool err = false;
  bool follow = false;
  bool about = false;
  std::optional<std::int64_t> tail;
  std::optional<std::int64_t> since_ms;
  std::string offset;
  bool events = false;  // with places, so that it can be taken up again
};

LogQuery Parse(const Call& call) {
  LogQuery query;
  query.worker = static_cast<std::uint32_t>(call.Number("worker", 0));
  query.tail = model::ParseWhole(call.Text("tail"));
  query.since_ms = model::ParseWhole(call.Text("since"));
  query.err = call.Flag("err");
  query.follow = call.Flag("follow");
  query.about = call.Flag("about");
  query.offset = call.Text("offset");
  if (const auto* last = call.request->Find("Last-Event-ID")) query.offset = *last;
  const auto* accept = call.request->Find("Accept");
  query.events = accept != nullptr && accept->find("text/event-stream") != std::string::npos;
  return query;
}

class Follower : public std::enable_shared_from_this<Follower> {
 public:
  Follower(Service& service, net::HttpServer* server, Call call, model::JobNumber job,
           const std::string& path, const LogQuery& query)
      : service_(service),
        server_(server),
        call_(std::move(call)),
        job_(job),
        query_(query),
        reader_(path) {}

  void Begin() {
    reader_.Look();
    if (query_.about) return About();
    if (!query_.follow) reader_.Freeze();
    const bool placed = !query_.offset.empty();
    if (placed && !reader_.SeekTo(query_.offset)) {
      return ReplyError(*call_.exchange, {ErrorCode::kUsage, "the offset is no place in a log",
                                          "send the id of the last event of its stream", "offset"});
    }
    if (query_.events) {
      call_.exchange->BeginStream(200, "text/event-stream", {{"Cache-Control", "no-store"}});
      call_.exchange->Write(": muster\n\n");
    } else {
      call_.exchange->BeginStream(200, "application/octet-stream");
    }
    if (query_.follow) call_.exchange->SetEndless();
    if (query_.since_ms && !placed) reader_.SkipBefore(*query_.since_ms);
    seeking_ = query_.tail.has_value() && !placed;
    Step();
  }

 private:
  enum class Sent { kAll, kTurn, kFull };

  void About() {
    model::DocNode node = model::MapNode();
    Put(node, "worker", model::NumberNode(query_.worker));
    Put(node, "stream", model::TextNode(query_.err ? "err" : "out"));
    Put(node, "files", model::NumberNode(static_cast<std::int64_t>(reader_.files())));
    Put(node, "bytes", model::NumberNode(reader_.bytes()));
    // All places are taken: what came before, if anything did, is gone.
    Put(node, "full", model::BoolNode(reader_.files() >= LogReader::kFilesOfLog));
    ReplyNode(*call_.exchange, node, 200);
  }

  Sent Send() {
    for (std::size_t sent = 0; sent < kTurnBytes;) {
      if (call_.exchange->Queued() > kQueueBytes) return Sent::kFull;
      auto piece = reader_.Read(kPieceBytes);
      if (piece.empty()) return Sent::kAll;
      sent += piece.size();
      waited_ms_ = silent_ms_ = 0;
      if (query_.events) {
        piece = "id: " + reader_.Place() + "\ndata: " + net::ToBase64(piece) + "\n\n";
      }
      if (!call_.exchange->Write(std::move(piece))) return Sent::kAll;  // gone
    }
    return Sent::kTurn;
  }

  void Step() {
    if (call_.exchange->over()) return call_.exchange->Finish();
    if (seeking_) {
      seeking_ = !reader_.SeekTail(*query_.tail);
      return Again();
    }
    // Also while the reader lags: what is not held on to now may be dropped before it is read.
    if (query_.follow) reader_.Look();
    switch (Send()) {
      case Sent::kTurn:
        return Again();
      case Sent::kFull:
        waited_ms_ = std::clamp(2 * waited_ms_, 1, kFollowMs);
        return server_->After(waited_ms_, [self = shared_from_this()] { self->Step(); });
      case Sent::kAll:
        if (ended_ || !query_.follow) return End();
        silent_ms_ += kFollowMs;
        if (query_.events && silent_ms_ >= kKeepAliveMs) {
          silent_ms_ = 0;
          call_.exchange->Write(": still here\n\n");
        }
        return server_->After(kFollowMs, [self = shared_from_this()] { self->AskAgain(); });
    }
  }

  // By this whoever reads events tells the end of the log from that of the daemon.
  void End() {
    if (query_.events) call_.exchange->Write("event: end\ndata: all\n\n");
    call_.exchange->Finish();
  }

  void Again() {
    server_->Post([self = shared_from_this()] { self->Step(); });
  }

  // Whether it has ended is asked before the next look at the files, so that nothing is missed.
  void AskAgain() {
    service_.Read([self = shared_from_this()](Controller& control) {
      const auto* job = control.state().Find(self->job_);
      const bool ended = job == nullptr || job->ending.has_value();
      self->server_->Post([self, ended] {
        self->ended_ = ended;
        self->Step();
      });
    });
  }

  Service& service_;
  net::HttpServer* server_;
  Call call_;
  model::JobNumber job_;
  LogQuery query_;
  LogReader reader_;
  int waited_ms_ = 0;
  int silent_ms_ = 0;
  bool seeking_ = false;
  bool ended_ = false;
};

// Where the worker writes, or why there is nothing to show.
Result<std::string> PathOf(Controller& control, const state::JobRecord& job,
                           const LogQuery& query) {
  if (auto has = HasWorker(job, query.worker); !has) return tl::unexpected(has.error());
  std::string node;
  if (query.worker < job.workers.size()) node = job.workers[query.worker].node;
  if (node.empty() && !control.state().nodes().empty()) {
    node = control.state().nodes().begin()->first;
  }
  pools::Pool* pool = control.PoolOf(node);
  auto path = pool == nullptr ? "" : pool->LogPath(job.id, query.worker, query.err);
  if (path.empty()) {
    return Fail(ErrorCode::kNotFound, "job " + std::to_string(job.id) + " has no output here",
                "workers of a simulated pool write none");
  }
  return path;
}

}  // namespace

void ReadLogs(Desk& desk, const Call& call) {
  desk.Begin(call, [&desk, call](Controller& control, const Access& access) -> Result<void> {
    auto job = RecordOf(control, access, call.Path("job"));
    if (!job) return tl::unexpected(job.error());
    if (auto may = access.MayAct(*job); !may) return may;
    const auto query = Parse(call);
    const auto path = PathOf(control, *job, query);
    if (!path) return tl::unexpected(path.error());
    auto follower =
        std::make_shared<Follower>(desk.service(), desk.server(), call, job->id, *path, query);
    desk.Keep(call, call.exchange, [id = job->id](Controller& now, const Access& later) {
      const auto still = RecordOf(now, later, std::to_string(id));
      return still && later.MayAct(*still);
    });
    desk.server()->Post([follower] { follower->Begin(); });
    return {};
  });
}

}  // namespace muster::api
