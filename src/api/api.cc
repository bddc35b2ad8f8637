#include "api/api.h"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "api/logs.h"
#include "api/requests.h"
#include "control/views.h"
#include "model/problems.h"
#include "model/queue_codec.h"
#include "model/spec_codec.h"
#include "model/vocabulary.h"

namespace muster::api {

using control::Controller;
using control::Service;
using model::DocNode;
using model::JobNumber;
using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

constexpr std::int64_t kMostEvents = 100'000, kMostJobs = 100'000;

}  // namespace

int HttpStatus(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kDenied:
      return 403;
    case ErrorCode::kInvalid:
      return 422;
    case ErrorCode::kConflict:
      return 409;
    case ErrorCode::kUnavailable:
      return 503;
    case ErrorCode::kTimeout:
      return 504;
    case ErrorCode::kInternal:
      return 500;
  }
  return 500;
}

void ReplyError(net::Exchange& exchange, const Error& error) {
  DocNode node = MapNode();
  Put(node, "title", TextNode(error.message));
  Put(node, "code", TextNode(CodeName(error.code)));
  Put(node, "status", NumberNode(HttpStatus(error.code)));
  Put(node, "hint", TextNode(error.hint));
  net::Response response;
  response.status = HttpStatus(error.code);
  response.content_type = "application/problem+json";
  response.body = model::WriteJson(node);
  exchange.Reply(std::move(response));
}

void ReplyNode(net::Exchange& exchange, const DocNode& node, int status) {
  net::Response response;
  response.status = status;
  response.body = model::WriteJson(node);
  exchange.Reply(std::move(response));
}

std::string_view CodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kUsage:
      return "usage";
    case ErrorCode::kNotFound:
      return "not-found";
    case ErrorCode::kDenied:
      return "denied";
    case ErrorCode::kConflict:
      return "conflict";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

struct Api::Impl {
  Service& service;
  std::string version;
  net::HttpServer* server = nullptr;

  void Submit(const Call& call);
  void Jobs(const Call& call);
  void Job(const Call& call);
  void Act(const Call& call);
  void Nodes(const Call& call);
  void Queues(const Call& call);
  void Events(const Call& call);
  void Export(const Call& call);

  // Reads on the controller's thread; what it builds is the answer.
  void Read(const Call& call, std::function<Result<DocNode>(Controller&)> read) {
    service.Read([call, read = std::move(read)](Controller& control) {
      auto node = read(control);
      if (node) {
        ReplyNode(*call.exchange, *node, 200);
      } else {
        ReplyError(*call.exchange, node.error());
      }
    });
  }
  // Changes something: answered once that is in the journal.
  void Change(const Call& call, int status, std::function<Result<DocNode>(Controller&)> change) {
    auto done = std::make_shared<Result<DocNode>>();
    service.Change(
        [done, change = std::move(change)](Controller& control) { *done = change(control); },
        [call, status, done](const Result<void>& written) {
          if (!*done) return ReplyError(*call.exchange, done->error());
          if (!written) return ReplyError(*call.exchange, written.error());
          ReplyNode(*call.exchange, **done, status);
        });
  }
};

Api::Api(Service& service, std::string version)
    : impl_(new Impl{service, std::move(version), nullptr}) {}
Api::~Api() = default;

void Api::Attach(net::HttpServer& server) { impl_->server = &server; }

void Api::Handle(net::Request request, std::shared_ptr<net::Exchange> exchange) {
  Call call = MakeCall(std::move(request), std::move(exchange));
  const auto& words = call.words;
  const bool get = call.request->method == "GET", post = call.request->method == "POST";
  const std::string noun = words.empty() ? "" : words[0];
  if (noun == "jobs" && post && words.size() == 1) return impl_->Submit(call);
  if (noun == "jobs" && post && words.size() == 2) return impl_->Act(call);
  if (noun == "jobs" && get && words.size() == 1) return impl_->Jobs(call);
  if (noun == "jobs" && get) return impl_->Job(call);
  if (noun == "nodes") return impl_->Nodes(call);
  if (noun == "queues") return impl_->Queues(call);
  if (noun == "events" && get) return impl_->Events(call);
  if (noun == "snapshot" && get) return impl_->Export(call);
  if (noun == "gpus" && get) {
    return impl_->Read(call, [](Controller& c) -> Result<DocNode> { return control::GpusView(c); });
  }
  if ((noun == "version" || noun == "health") && get) {
    const std::string version = impl_->version;
    return impl_->Read(call, [version](Controller& c) -> Result<DocNode> {
      DocNode node = MapNode();
      Put(node, "version", TextNode(version));
      Put(node, "revision", NumberNode(static_cast<std::int64_t>(c.state().revision())));
      Put(node, "jobs", NumberNode(static_cast<std::int64_t>(c.state().live_jobs())));
      Put(node, "ended", NumberNode(static_cast<std::int64_t>(c.state().ended_jobs())));
      return node;
    });
  }
  ReplyError(*call.exchange,
             {ErrorCode::kNotFound, call.request->method + " " + call.request->path + " is nothing",
              "nouns: jobs, nodes, gpus, queues, events, version"});
}

void Api::Impl::Submit(const Call& call) {
  auto decoded = model::DecodeSpec(call.request->body);
  if (decoded.problems.HasErrors()) {
    return ReplyError(*call.exchange, model::ToError(decoded.problems));
  }
  if (decoded.spec.jobs.empty() || !decoded.spec.queues.empty()) {
    return ReplyError(*call.exchange,
                      {ErrorCode::kInvalid, "this is not a job file",
                       "`muster queue apply` takes queues; a job has a name and a command"});
  }
  const bool held = call.Flag("held"), dry_run = call.Flag("dry_run");
  const auto* key = call.request->Find("Idempotency-Key");
  Change(call, dry_run ? 200 : 201,
         [call, jobs = std::move(decoded.spec.jobs), held, dry_run,
          key = key == nullptr ? "" : *key](Controller& control) -> Result<DocNode> {
           DocNode list = ListNode();
           for (std::size_t i = 0; i < jobs.size(); ++i) {
             control::Submission submission;
             submission.spec = jobs[i];
             submission.user = call.user;
             submission.uid = call.uid;
             submission.gid = call.gid;
             submission.held = held;
             submission.dry_run = dry_run;
             if (!key.empty()) submission.key = key + "#" + std::to_string(i);
             auto id = control.Submit(std::move(submission));
             if (!id) {
               if (list.children.empty()) return tl::unexpected(id.error());
               Error error = id.error();
               error.message += "; the " + std::to_string(list.children.size()) +
                                " jobs before it in the file were accepted";
               return tl::unexpected(std::move(error));
             }
             DocNode one = MapNode();
             Put(one, "id", TextNode(std::to_string(*id)));
             Put(one, "name", TextNode(jobs[i].name));
             Put(one, "queue", TextNode(jobs[i].queue));
             if (jobs[i].array) {
               Put(one, "tasks", NumberNode(jobs[i].array->last - jobs[i].array->first + 1));
             }
             list.children.push_back(std::move(one));
           }
           DocNode node = MapNode();
           Put(node, "jobs", std::move(list));
           return node;
         });
}

void Api::Impl::Jobs(const Call& call) {
  Read(call, [call](Controller& control) -> Result<DocNode> {
    const std::string queue = call.Text("queue"), user = call.Text("user");
    const auto limit =
        static_cast<std::size_t>(std::clamp<std::int64_t>(call.Number("limit", 500), 1, kMostJobs));
    const bool all = call.Flag("all");
    DocNode list = ListNode();
    const auto wanted = [&](const state::JobRecord& job) {
      const auto& of = job.spec->queue;
      return (user.empty() || job.user == user) &&
             (queue.empty() || of == queue || of.starts_with(queue + "/"));
    };
    // By number, newest first: what is remembered, and where it was asked for what history has.
    std::map<JobNumber, DocNode, std::greater<>> found;
    const auto& jobs = control.state().jobs();
    for (auto it = jobs.rbegin(); it != jobs.rend() && found.size() < limit; ++it) {
      if ((!all && it->second.ending) || !wanted(it->second)) continue;
      found.emplace(it->first, control::JobView(control, it->second, false));
    }
    if (all) {
      state::HistoryQuery query;
      query.queue = queue;
      query.user = user;
      query.limit = limit;
      auto rows = control.store().History(query);
      if (!rows) return tl::unexpected(rows.error());
      for (const auto& row : *rows) {
        if (control.state().Find(row.job) != nullptr) continue;
        auto job = state::DecodeJobRecord(row.body);
        if (job) found.emplace(row.job, control::JobView(control, *job, false));
      }
    }
    for (auto& [id, view] : found) {
      if (list.children.size() < limit) list.children.push_back(std::move(view));
    }
    DocNode node = MapNode();
    Put(node, "jobs", std::move(list));
    Put(node, "revision", NumberNode(static_cast<std::int64_t>(control.state().revision())));
    return node;
  });
}

namespace {

// The job as it is, or as history remembers it.
Result<state::JobRecord> RecordOf(Controller& control, JobNumber id) {
  if (const auto* job = control.state().Find(id)) return *job;
  state::HistoryQuery query;
  query.job = id;
  auto rows = control.store().History(query);
  if (!rows) return tl::unexpected(rows.error());
  if (rows->empty()) {
    return Fail(ErrorCode::kNotFound, "job " + std::to_string(id) + " is not remembered any more",
                "it was an array whose tasks have all ended, or its history was compacted");
  }
  return state::DecodeJobRecord(rows->front().body);
}

Result<DocNode> EventsOf(Controller& control, const state::RecordQuery& query) {
  DocNode list = ListNode();
  auto read = control.store().Read(query, [&](const state::Record& record) -> Result<void> {
    auto body = model::DecodeEvent(record.body);
    if (!body) return tl::unexpected(body.error());
    list.children.push_back(control::RecordView(record, *body));
    return {};
  });
  if (!read) return tl::unexpected(read.error());
  return list;
}

}  // namespace

void Api::Impl::Job(const Call& call) {
  const std::string what = call.words.size() > 2 ? call.words[2] : "";
  if (what == "logs") return StreamLogs(service, server, call);
  Read(call, [call, what](Controller& control) -> Result<DocNode> {
    auto id = control.Resolve(call.words[1], call.user);
    if (!id) return tl::unexpected(id.error());
    if (const auto* array = control.state().FindArray(*id)) {
      if (what.empty()) return control::ArrayView(control.state(), *array);
      if (what != "events") {
        return Fail(ErrorCode::kInvalid, "job " + std::to_string(*id) + " is an array",
                    "name one of its tasks: " + array->spec->name + "[" +
                        std::to_string(array->spec->array->first) + "]");
      }
    }
    if (what == "events") {
      state::RecordQuery query;
      query.job = *id;
      query.limit =
          static_cast<std::size_t>(std::min<std::int64_t>(call.Number("limit", 200), kMostEvents));
      query.latest = true;
      auto list = EventsOf(control, query);
      if (!list) return list;
      DocNode node = MapNode();
      Put(node, "events", std::move(*list));
      return node;
    }
    auto job = RecordOf(control, *id);
    if (!job) return tl::unexpected(job.error());
    if (what.empty()) return control::JobView(control, *job, true);
    if (what == "explain") return control::WhyView(control, *job);
    return Fail(ErrorCode::kNotFound, "a job has no \"" + what + "\"",
                "explain, events and logs are there");
  });
}

void Api::Impl::Act(const Call& call) {
  const auto colon = call.words[1].rfind(':');
  const std::string word = call.words[1].substr(0, colon);
  const std::string verb = colon == std::string::npos ? "" : call.words[1].substr(colon + 1);
  Change(call, 200, [call, word, verb](Controller& control) -> Result<DocNode> {
    auto id = control.Resolve(word, call.user);
    if (!id) return tl::unexpected(id.error());
    Result<void> done;
    if (verb == "cancel") {
      done = control.Cancel(*id, call.user);
    } else if (verb == "suspend") {
      done = control.Suspend(*id, call.user);
    } else if (verb == "resume" || verb == "release") {
      done = control.Resume(*id, call.user);
    } else if (verb == "hold") {
      done = control.Hold(*id, call.user);
    } else if (verb == "requeue") {
      done = control.Requeue(*id, call.user);
    } else if (verb == "scale") {
      const auto most = std::int64_t{1} << 30;
      done = control.Scale(*id, static_cast<int>(std::min(call.Number("min", 0), most)),
                           static_cast<int>(std::min(call.Number("max", 0), most)), call.user);
    } else if (verb == "priority") {
      done = control.SetPriority(*id, call.Number("value", -1), call.user);
    } else {
      done = Fail(ErrorCode::kNotFound, "\"" + verb + "\" is nothing that can be done to a job",
                  "cancel, suspend, resume, hold, release, requeue, scale, priority");
    }
    if (!done) return tl::unexpected(done.error());
    DocNode node = MapNode();
    Put(node, "id", TextNode(std::to_string(*id)));
    if (const auto* job = control.state().Find(*id)) {
      Put(node, "name", TextNode(job->name()));
      Put(node, "phase", TextNode(Name(PhaseOf(*job))));
    }
    return node;
  });
}

void Api::Impl::Nodes(const Call& call) {
  if (call.request->method == "GET") {
    return Read(call, [](Controller& c) -> Result<DocNode> { return control::NodesView(c); });
  }
  const std::string word = call.words.size() > 1 ? call.words[1] : "";
  const auto colon = word.rfind(':');
  const std::string name = word.substr(0, colon);
  const std::string verb = colon == std::string::npos ? "" : word.substr(colon + 1);
  Change(call, 200, [call, name, verb](Controller& control) -> Result<DocNode> {
    if (verb != "cordon" && verb != "drain" && verb != "uncordon") {
      return Fail(ErrorCode::kNotFound, "\"" + verb + "\" is nothing that can be done to a node",
                  "cordon, drain, uncordon");
    }
    auto done = control.MarkNode(name, verb != "uncordon", verb == "drain", call.user);
    if (!done) return tl::unexpected(done.error());
    DocNode node = MapNode();
    Put(node, "node", TextNode(name));
    Put(node, "state",
        TextNode(verb == "uncordon" ? "ready"
                 : verb == "drain"  ? "draining"
                                    : "cordoned"));
    return node;
  });
}

void Api::Impl::Queues(const Call& call) {
  if (call.request->method == "GET") {
    return Read(call, [](Controller& c) -> Result<DocNode> { return control::QueuesView(c); });
  }
  auto decoded = model::DecodeSpec(call.request->body);
  if (decoded.problems.HasErrors()) {
    return ReplyError(*call.exchange, model::ToError(decoded.problems));
  }
  if (decoded.spec.queues.empty()) {
    return ReplyError(*call.exchange, {ErrorCode::kInvalid, "there are no queues in this file",
                                       "it needs a list under `queues:`"});
  }
  Change(call, 200,
         [call, queues = std::move(decoded.spec.queues)](Controller& control) -> Result<DocNode> {
           if (auto done = control.ApplyQueues(queues, call.user); !done) {
             return tl::unexpected(done.error());
           }
           DocNode node = MapNode(), list = ListNode();
           for (const auto& queue : queues) list.children.push_back(TextNode(queue.name));
           Put(node, "applied", std::move(list));
           return node;
         });
}

void Api::Impl::Events(const Call& call) {
  Read(call, [call](Controller& control) -> Result<DocNode> {
    state::RecordQuery query;
    query.after = static_cast<std::uint64_t>(call.Number("since", 0));
    query.limit =
        static_cast<std::size_t>(std::min<std::int64_t>(call.Number("limit", 200), kMostEvents));
    query.latest = query.after == 0;
    auto list = EventsOf(control, query);
    if (!list) return list;
    DocNode node = MapNode();
    Put(node, "events", std::move(*list));
    Put(node, "revision", NumberNode(static_cast<std::int64_t>(control.state().revision())));
    return node;
  });
}

// Everything the engine saw since its cluster was built: the state then, and the records since.
void Api::Impl::Export(const Call& call) {
  service.Read([call](Controller& control) {
    auto bytes = control.Export();
    if (!bytes) return ReplyError(*call.exchange, bytes.error());
    net::Response response;
    response.content_type = "application/octet-stream";
    response.body = std::move(*bytes);
    call.exchange->Reply(std::move(response));
  });
}

}  // namespace muster::api
