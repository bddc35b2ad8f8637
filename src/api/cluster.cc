#include "api/cluster.h"

#include <algorithm>
#include <memory>

#include "api/record_list.h"
#include "api/tokens.h"
#include "base/units.h"
#include "control/usage.h"
#include "control/views.h"
#include "model/problems.h"
#include "model/queue_codec.h"
#include "model/spec_codec.h"

namespace muster::api {

using model::ListNode;
using model::MapNode;
using model::Put;
using model::TextNode;

namespace {

constexpr std::size_t kRowsAtOnce = 200;

Result<const model::Queue*> QueueNamed(Controller& control, const Access& access,
                                       const std::string& name) {
  for (const auto& queue : control.state().queues()) {
    if (queue.name == name && access.On(name) >= control::Role::kViewer) return &queue;
  }
  return Fail(ErrorCode::kNotFound, "there is no queue \"" + name + "\"",
              "`muster queue list` shows them");
}

// Changes with its file, and not with what runs in it.
std::string TagOfQueue(const model::Queue& queue) {
  return "\"" + HashOf(model::EncodeQueues({queue}, model::TextFormat::kJson)).substr(0, 16) + "\"";
}

std::string FileOf(const model::Queue& queue) {
  return model::WriteJson(model::QueuesToNode({queue}));
}

// A role in the file is a right that is given away: only who has it may give it.
Result<void> MayApply(Controller& control, const Access& access, const model::Queue& queue) {
  const auto& known = control.state().queues();
  const bool is_new = std::none_of(known.begin(), known.end(),
                                   [&](const auto& one) { return one.name == queue.name; });
  // Quota and limit of a queue are the business of the one above it.
  if (access.IsAdmin()) return {};
  if (queue.parent.empty()) {
    return Fail(ErrorCode::kDenied, "queue " + queue.name + " is at the top of the tree",
                is_new ? "only an admin makes one" : "only an admin changes it");
  }
  return access.MayAdminister(queue.parent);
}

Result<std::vector<model::Queue>> DecodeQueueFile(const std::string& body) {
  auto decoded = model::DecodeSpec(body);
  if (decoded.problems.HasErrors()) return tl::unexpected(model::ToError(decoded.problems));
  if (decoded.spec.queues.empty()) {
    return Fail(ErrorCode::kInvalid, "there are no queues in this file",
                "it needs a list under `queues:`");
  }
  return std::move(decoded.spec.queues);
}

Changed Acted(const std::string& id, const std::string& object, const std::string& queue,
              std::string before, std::string after, bool dry_run) {
  DocNode node = MapNode();
  Put(node, "id", TextNode(id));
  if (dry_run) Put(node, "dry_run", model::BoolNode(true));
  return {std::move(node), {{object, queue, std::move(before), std::move(after)}}};
}

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
    return control::NodeView(control, found->second);
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
    auto before = text();
    auto done = control.MarkNode(name, verb != "uncordon", verb == "drain",
                                 {access.caller().user, call.dry_run()});
    if (!done) return tl::unexpected(done.error());
    auto made = Acted(name, "node " + name, "", std::move(before), text(), call.dry_run());
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

void ApplyQueues(Desk& desk, const Call& call) {
  auto queues = DecodeQueueFile(call.request->body);
  if (!queues) return ReplyError(*call.exchange, queues.error());
  desk.Change(
      call, 200,
      [call, queues = std::move(*queues)](Controller& control,
                                          const Access& access) -> Result<Changed> {
        DocNode list = ListNode();
        std::vector<Trace> traces;  // one each, for the admins of each
        for (const auto& queue : queues) {
          if (auto may = MayApply(control, access, queue); !may) {
            return tl::unexpected(may.error());
          }
          list.children.push_back(TextNode(queue.name));
          std::string before;
          for (const auto& known : control.state().queues()) {
            if (known.name == queue.name) before = FileOf(known);
          }
          traces.push_back({"queue " + queue.name, queue.name, std::move(before), FileOf(queue)});
        }
        auto done = control.ApplyQueues(queues, {access.caller().user, call.dry_run()});
        if (!done) return tl::unexpected(done.error());
        DocNode node = MapNode();
        Put(node, "applied", std::move(list));
        return Changed{std::move(node), std::move(traces)};
      });
}

void GetQueue(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    auto queue = QueueNamed(control, access, call.Path("queue"));
    if (!queue) return tl::unexpected(queue.error());
    return Answer(control::QueueView(control, **queue), TagOfQueue(**queue));
  });
}

void PutQueue(Desk& desk, const Call& call) {
  auto queues = DecodeQueueFile(call.request->body);
  if (!queues) return ReplyError(*call.exchange, queues.error());
  if (queues->size() != 1 || queues->front().name != call.Path("queue")) {
    return ReplyError(*call.exchange,
                      {ErrorCode::kInvalid, "the file is not about queue " + call.Path("queue"),
                       "it has one queue, of that name"});
  }
  desk.Change(call, 200,
              [call, queues = std::move(*queues)](Controller& control,
                                                  const Access& access) -> Result<Changed> {
                if (auto may = MayApply(control, access, queues.front()); !may) {
                  return tl::unexpected(may.error());
                }
                std::string before;
                if (auto known = QueueNamed(control, access, queues.front().name)) {
                  if (auto same = CheckMatch(call, TagOfQueue(**known)); !same) {
                    return tl::unexpected(same.error());
                  }
                  before = FileOf(**known);
                } else if (call.request->Find("If-Match") != nullptr) {
                  if (auto same = CheckMatch(call, ""); !same) {
                    return tl::unexpected(same.error());  // it was deleted meanwhile
                  }
                }
                auto done = control.ApplyQueues(queues, {access.caller().user, call.dry_run()});
                if (!done) return tl::unexpected(done.error());
                const auto& name = queues.front().name;
                auto now = QueueNamed(control, access, name);
                // Queues are built into the cluster with the next cycle; shares follow then.
                const auto& shown = now ? **now : queues.front();
                return Changed{Answer(control::QueueView(control, shown), TagOfQueue(shown)),
                               {{"queue " + name, name, std::move(before), FileOf(shown)}}};
              });
}

void DeleteQueue(Desk& desk, const Call& call) {
  desk.Change(call, 200, [call](Controller& control, const Access& access) -> Result<Changed> {
    const auto& name = call.Path("queue");
    auto queue = QueueNamed(control, access, name);
    if (!queue) return tl::unexpected(queue.error());
    if (auto may = MayApply(control, access, **queue); !may) return tl::unexpected(may.error());
    if (auto same = CheckMatch(call, TagOfQueue(**queue)); !same) {
      return tl::unexpected(same.error());
    }
    auto before = FileOf(**queue);
    const auto parent = (*queue)->parent;
    auto done = control.DeleteQueue(name, {access.caller().user, call.dry_run()});
    if (!done) return tl::unexpected(done.error());
    return Acted(name, "queue " + name, parent, std::move(before), "", call.dry_run());
  });
}

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
