#include "api/cluster.h"

#include <algorithm>
#include <memory>

#include "base/units.h"
#include "control/usage.h"
#include "control/views.h"

namespace muster::api {

using model::ListNode;
using model::MapNode;
using model::Put;
using model::TextNode;

namespace {

constexpr std::int64_t kDefaultLimit = 200;
constexpr std::size_t kRowsAtOnce = 200;
constexpr std::size_t kDecisionsLooked = 10'000;  // records, most of which are none

}  // namespace

void ListNodes(Desk& desk, const Call& call) {
  desk.Read(call, [](Controller& control, const Access&) -> Result<Answer> {
    return control::NodesView(control);
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
  desk.Read(call, [](Controller& control, const Access& access) -> Result<Answer> {
    return control::GpusView(control, access);
  });
}

void ListPools(Desk& desk, const Call& call) {
  desk.Read(call, [](Controller& control, const Access&) -> Result<Answer> {
    return control::PoolsView(control);
  });
}

void GetTopology(Desk& desk, const Call& call) {
  desk.Read(call, [](Controller& control, const Access&) -> Result<Answer> {
    return control::TopologyView(control);
  });
}

void ListQueues(Desk& desk, const Call& call) {
  desk.Read(call, [](Controller& control, const Access& access) -> Result<Answer> {
    return control::QueuesView(control, access);
  });
}

void ListDecisions(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    const auto limit = static_cast<std::size_t>(call.Number("limit", kDefaultLimit));
    const auto before = static_cast<std::uint64_t>(
        call.Number("before", static_cast<std::int64_t>(control.state().revision()) + 1));
    state::RecordQuery query;
    query.after = before > kDecisionsLooked ? before - kDecisionsLooked - 1 : 0;
    query.limit = kDecisionsLooked;
    DocNode list = ListNode();
    auto read = control.store().Read(query, [&](const state::Record& record) -> Result<void> {
      if (record.revision >= before || record.job == 0) return {};
      const auto* job = control.state().Find(record.job);
      const bool seen =
          job == nullptr ? access.IsAdmin() : access.Sees(job->user, job->spec->queue);
      if (!seen) return {};
      auto body = model::DecodeEvent(record.body);
      if (!body) return tl::unexpected(body.error());
      if (auto node = control::DecisionView(record, *body)) {
        list.children.push_back(std::move(*node));
      }
      return {};
    });
    if (!read) return tl::unexpected(read.error());
    std::reverse(list.children.begin(), list.children.end());
    if (list.children.size() > limit) list.children.resize(limit);
    DocNode node = MapNode();
    Put(node, "decisions", std::move(list));
    return node;
  });
}

namespace {

struct Summing {
  Call call;
  control::Usage usage;
  model::JobNumber before = 0;  // what history has from here on is still to be added
};

// A piece of history, then others get their turn.
void AddHistory(Desk& desk, const std::shared_ptr<Summing>& sum, Controller& control) {
  state::HistoryQuery query;
  query.before = sum->before;
  query.limit = kRowsAtOnce;
  auto rows = control.store().History(query);
  if (!rows) return ReplyError(*sum->call.exchange, rows.error());
  for (const auto& row : *rows) {
    sum->before = row.job;
    if (!sum->usage.Wants(row.user, row.queue, row.ended_ms)) continue;
    if (control.state().Find(row.job) != nullptr) continue;
    if (auto job = state::DecodeJobRecord(row.body)) sum->usage.Add(*job, control.NowMs());
  }
  if (sum->call.exchange->gone()) return;
  if (rows->size() < kRowsAtOnce) return ReplyNode(*sum->call.exchange, sum->usage.View(), 200);
  desk.service().Read([&desk, sum](Controller& next) { AddHistory(desk, sum, next); });
}

}  // namespace

void GetUsage(Desk& desk, const Call& call) {
  const auto since = call.Text("since");
  const auto back_ms = ParseDurationMs(since);
  if (!since.empty() && !back_ms) {
    return ReplyError(*call.exchange, {ErrorCode::kUsage, "parameter \"since\" is no time span",
                                       "write it like 24h or 7d", "since"});
  }
  desk.Begin(call,
             [&desk, call, back_ms](Controller& control, const Access& access) -> Result<void> {
               const auto by = call.Text("by").empty() ? "user" : call.Text("by");
               const auto now_ms = control.NowMs();
               auto sum = std::make_shared<Summing>(
                   Summing{call, control::Usage(access, by, back_ms ? now_ms - *back_ms : 0)});
               for (const auto& [id, job] : control.state().jobs()) sum->usage.Add(job, now_ms);
               AddHistory(desk, sum, control);
               return {};
             });
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
