#include "api/cluster.h"

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

#include "api/record_list.h"
#include "base/units.h"
#include "control/usage.h"
#include "control/views.h"

namespace muster::api {

using model::MapNode;
using model::Put;
using model::TextNode;

namespace {

constexpr std::size_t kRowsAtOnce = 200;
constexpr std::size_t kJobsAtOnce = 2'000;

}  // namespace

void ListNodes(Desk& desk, const Call& call) {
  desk.List(call, [](Controller& control, const Access&) {
    std::vector<std::string> names;
    std::vector<const state::NodeRecord*> records;
    for (const auto& [name, record] : control.state().nodes()) {
      names.push_back(name);
      records.push_back(&record);
    }
    return Items(std::move(names), [&control, records = std::move(records)](std::size_t at) {
      return control::NodeView(control, *records[at]);
    });
  });
}

void GetNode(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access&) -> Result<Answer> {
    const auto found = control.state().nodes().find(call.Path("node"));
    if (found == control.state().nodes().end()) {
      return Fail(ErrorCode::kNotFound, "there is no node \"" + call.Path("node") + "\"",
                  "`muster nodes` lists them");
    }
    return Answer(control::NodeView(control, found->second), TagOf(found->second.revision));
  });
}

void MarkNode(Desk& desk, const Call& call) {
  desk.Change(call, 200, [call](Controller& control, const Access& access) -> Result<Changed> {
    const auto& name = call.Path("node");
    const auto& verb = call.operation().verb;
    const auto text = [&]() -> std::string {
      const auto found = control.state().nodes().find(name);
      if (found == control.state().nodes().end()) return "";
      DocNode node = MapNode();
      Put(node, "cordoned", model::BoolNode(found->second.node.cordoned));
      Put(node, "draining", model::BoolNode(found->second.node.draining));
      return model::WriteJson(node);
    };
    const auto tag = [&]() -> std::string {
      const auto found = control.state().nodes().find(name);
      return found == control.state().nodes().end() ? "" : TagOf(found->second.revision);
    };
    auto before = text();
    if (!before.empty()) {
      if (auto same = CheckMatch(call, tag()); !same) return tl::unexpected(same.error());
    }
    auto done = control.MarkNode(name, verb != "uncordon", verb == "drain",
                                 {access.caller().user, call.dry_run()});
    if (!done) return tl::unexpected(done.error());
    auto made = Acted(call, name, {"node " + name, "", std::move(before), text()}, tag());
    Put(made.answer.node, "phase",
        TextNode(verb == "uncordon" ? "ready"
                 : verb == "drain"  ? "draining"
                                    : "cordoned"));
    return made;
  });
}

void ListGpus(Desk& desk, const Call& call) {
  desk.List(call, [](Controller& control, const Access& access) {
    auto gpus = std::make_shared<control::GpuViews>(control, access);
    return Items(gpus->ids(), [gpus](std::size_t at) { return gpus->View(at); });
  });
}

void ListPools(Desk& desk, const Call& call) {
  desk.List(call, [](Controller& control, const Access&) { return control::PoolsView(control); });
}

void GetTopology(Desk& desk, const Call& call) {
  desk.Read(call, [](Controller& control, const Access&) -> Result<Answer> {
    return control::TopologyView(control);
  });
}

void ListQueues(Desk& desk, const Call& call) { desk.List(call, control::QueuesView); }

void ListDecisions(Desk& desk, const Call& call) {
  ListRecords(desk, call, [](Controller& control, const Access& access) {
    return RecordsOf{
        0, [&control, access](const auto& record, const auto& body) -> std::optional<DocNode> {
          const auto* job = control.state().Find(record.job);
          const bool seen =
              job == nullptr ? access.IsAdmin() : access.Sees(job->user, job->spec->queue);
          if (record.job == 0 || !seen) return std::nullopt;
          return control::DecisionView(record, body);
        }};
  });
}

namespace {

// A sum over all jobs, in pieces: the scheduler's turns come between them. It is made by the clerk,
// who waits for each piece and then has the sum to itself, since sorting it may take long too.
class Summing {
 public:
  Summing(Desk& desk, Call call, Selection selection, std::optional<std::int64_t> back_ms)
      : desk_(desk), call_(std::move(call)), selection_(std::move(selection)), back_ms_(back_ms) {}

  void Run() {
    while (!call_.exchange->gone()) {
      const auto done = Ask();
      if (!done) return;  // answered, or the daemon stops
      if (!*done) continue;
      auto page = selection_.Page(usage_->View(), revision_);
      if (!page) return ReplyError(*call_.exchange, page.error());
      Put(*page, "by", TextNode(usage_->by()));
      return ReplyNode(*call_.exchange, *page, 200);
    }
  }

 private:
  // Whether that was the last piece; none: there is no more to be had.
  std::optional<bool> Ask() try {
    auto asked = std::make_shared<std::promise<bool>>();
    auto answer = asked->get_future();
    desk_.Begin(call_,
                [this, asked = std::move(asked)](Controller& control,
                                                 const Access& access) -> Result<void> {
                  auto done = Add(control, access);
                  if (!done) return tl::unexpected(done.error());
                  asked->set_value(*done);
                  return {};
                });
    return answer.get();
  } catch (const std::future_error&) {
    return std::nullopt;
  }

  Result<bool> Add(Controller& control, const Access& access) {
    revision_ = control.state().revision();
    if (!usage_) {
      now_ms_ = control.NowMs();
      const auto by = call_.Text("by").empty() ? "user" : call_.Text("by");
      usage_.emplace(access, by, back_ms_ ? now_ms_ - *back_ms_ : 0);
    }
    return in_state_ ? AddState(control) : AddHistory(control);
  }

  Result<bool> AddState(Controller& control) {
    const auto& jobs = control.state().jobs();
    auto at = jobs.upper_bound(last_);
    for (std::size_t i = 0; i < kJobsAtOnce && at != jobs.end(); ++i, ++at) {
      last_ = at->first;
      usage_->Add(at->second, now_ms_);
      counted_.insert(last_);
    }
    in_state_ = at != jobs.end();
    return false;
  }

  Result<bool> AddHistory(Controller& control) {
    state::HistoryQuery query;
    query.before = before_;
    query.limit = kRowsAtOnce;
    auto rows = control.store().History(query);
    if (!rows) return tl::unexpected(rows.error());
    for (const auto& row : *rows) {
      before_ = row.job;
      if (!usage_->Wants(row.user, row.queue, row.ended_ms) || counted_.contains(row.job)) continue;
      if (auto job = state::DecodeJobRecord(row.body)) usage_->Add(*job, now_ms_);
    }
    return rows->size() < kRowsAtOnce;
  }

  Desk& desk_;
  Call call_;
  Selection selection_;
  std::optional<std::int64_t> back_ms_;
  std::optional<control::Usage> usage_;
  std::int64_t now_ms_ = 0;
  std::uint64_t revision_ = 0;
  bool in_state_ = true;
  model::JobNumber last_ = 0;    // of the state
  model::JobNumber before_ = 0;  // what history has from here on is still to be added
  std::unordered_set<model::JobNumber> counted_;  // they may move to history meanwhile
};

}  // namespace

void GetUsage(Desk& desk, Worker& clerk, const Call& call) {
  const auto since = call.Text("since");
  const auto back_ms = ParseDurationMs(since);
  if (!since.empty() && !back_ms) {
    return ReplyError(*call.exchange, {ErrorCode::kUsage, "parameter \"since\" is no time span",
                                       "write it like 24h or 7d", "since"});
  }
  auto selection = SelectionOf(call);
  if (!selection) return ReplyError(*call.exchange, selection.error());
  auto sum = std::make_shared<Summing>(desk, call, std::move(*selection),
                                       back_ms ? std::optional(*back_ms) : std::nullopt);
  if (clerk.Do([sum] { sum->Run(); }, call.caller.user)) return;
  ReplyError(*call.exchange,
             {ErrorCode::kUnavailable, "too many sums are being made", "try again in a moment"});
}

void ExportSnapshot(Desk& desk, const Call& call) {
  desk.Begin(call, [call](Controller& control, const Access&) -> Result<void> {
    auto bytes = control.Export();
    if (!bytes) return tl::unexpected(bytes.error());
    net::Response response;
    response.content_type = "application/octet-stream";
    response.body = std::move(*bytes);
    call.exchange->Reply(std::move(response));
    return {};
  });
}

}  // namespace muster::api
