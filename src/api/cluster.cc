#include "api/cluster.h"

#include <algorithm>
#include <memory>

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

struct Summing {
  Call call;
  Selection selection;
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
  if (rows->size() < kRowsAtOnce) {
    auto page = sum->selection.Page(sum->usage.View(), control.state().revision());
    if (!page) return ReplyError(*sum->call.exchange, page.error());
    Put(*page, "by", TextNode(sum->usage.by()));
    return ReplyNode(*sum->call.exchange, *page, 200);
  }
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
  auto selection = SelectionOf(call);
  if (!selection) return ReplyError(*call.exchange, selection.error());
  desk.Begin(call,
             [&desk, call, back_ms, selection = std::move(*selection)](
                 Controller& control, const Access& access) -> Result<void> {
               const auto by = call.Text("by").empty() ? "user" : call.Text("by");
               const auto now_ms = control.NowMs();
               auto sum = std::make_shared<Summing>(Summing{
                   call, selection, control::Usage(access, by, back_ms ? now_ms - *back_ms : 0)});
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
