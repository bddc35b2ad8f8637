// One queue, and the file of all.
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "api/cluster.h"
#include "api/tokens.h"
#include "control/views.h"
#include "model/fields.h"
#include "model/paths.h"
#include "model/problems.h"
#include "model/queue_codec.h"

namespace muster::api {

using model::ListNode;
using model::MapNode;
using model::Put;
using model::TextNode;

namespace {

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
Result<void> MayApply(const Access& access, const model::Queue& queue) {
  // Quota and limit of a queue are the business of the one above it.
  if (access.IsAdmin()) return {};
  if (queue.parent.empty()) {
    return Fail(ErrorCode::kDenied, "queue " + queue.name + " is at the top of the tree",
                "only an admin makes or changes one of those");
  }
  return access.MayAdminister(queue.parent);
}

tl::unexpected<Error> Mistaken(const std::vector<DocNode>& documents, model::Problems& problems) {
  LocateProblems(documents, problems);
  return tl::unexpected(model::ToError(problems));
}

Result<std::vector<model::Queue>> DecodeQueueFile(const std::string& body) {
  model::Problems problems;
  const auto documents = model::ParseDocuments(body, problems);
  std::vector<const DocNode*> lists;
  for (const auto& document : documents) {
    model::MapReader reader(document, "a queue file", problems);
    if (const auto* list = reader.Require("queues", "`queues: [{name: vision}]`")) {
      lists.push_back(list);
    }
    reader.Finish();
  }
  if (documents.empty() && !problems.HasErrors()) {
    problems.Missing({}, "queues", "the body is empty", "`queues: [{name: vision}]`");
  }
  auto queues = model::QueuesFromNodes(lists, problems);
  if (problems.HasErrors()) return Mistaken(documents, problems);
  return queues;
}

// A queue file with this one queue, or the queue alone, which need not repeat its name.
Result<model::Queue> DecodeOneQueue(const std::string& body, const std::string& name) {
  model::Problems problems;
  auto documents = model::ParseDocuments(body, problems);
  const bool alone =
      !problems.HasErrors() && documents.size() == 1 && documents[0].Find("queues") == nullptr;
  std::vector<model::Queue> queues;
  if (alone) {
    DocNode list = ListNode();
    list.children.push_back(documents[0]);
    auto& queue = list.children[0];
    if (queue.kind == model::DocKind::kMap && queue.Find("name") == nullptr) {
      Put(queue, "name", TextNode(name));
    }
    const DocNode* const lists[] = {&list};
    queues = model::QueuesFromNodes(lists, problems);
  } else if (!problems.HasErrors()) {
    auto file = DecodeQueueFile(body);
    if (!file) return tl::unexpected(file.error());
    queues = std::move(*file);
  }
  if (problems.HasErrors()) return Mistaken(documents, problems);
  if (queues.size() == 1 && queues.front().name == name) return std::move(queues.front());
  Error error{ErrorCode::kInvalid, "the body is not about queue " + name,
              "it has one queue, of that name"};
  error.path = alone ? "name" : queues.size() == 1 ? "queues[0].name" : "queues";
  return tl::unexpected(std::move(error));
}

// Without what only the scheduler knows: of a queue that is not as it would be.
DocNode BareView(const model::Queue& queue) {
  DocNode node = MapNode();
  Put(node, "id", TextNode(queue.name));
  Put(node, "name", TextNode(queue.name));
  Put(node, "spec", std::move(model::QueuesToNode({queue}).children[0]));
  Put(node, "dry_run", model::BoolNode(true));
  return node;
}

}  // namespace

void ApplyQueues(Desk& desk, const Call& call) {
  auto queues = DecodeQueueFile(call.request->body);
  if (!queues) return ReplyError(*call.exchange, queues.error());
  const auto may_apply = [queues = *queues](Controller&, const Access& access) -> Result<void> {
    for (const auto& queue : queues) {
      if (auto may = MayApply(access, queue); !may) return may;
    }
    return {};
  };
  desk.Change(
      call, 200,
      [call, may_apply, queues = std::move(*queues)](Controller& control,
                                                     const Access& access) -> Result<Changed> {
        if (auto may = may_apply(control, access); !may) return tl::unexpected(may.error());
        DocNode list = ListNode();
        std::vector<Trace> traces;  // one each, for the admins of each
        std::unordered_map<std::string_view, const model::Queue*> now;
        for (const auto& known : control.state().queues()) now.emplace(known.name, &known);
        for (const auto& queue : queues) {
          list.children.push_back(TextNode(queue.name));
          const auto known = now.find(queue.name);
          std::string before = known == now.end() ? "" : FileOf(*known->second);
          traces.push_back({"queue " + queue.name, queue.name, std::move(before), FileOf(queue)});
        }
        auto done = control.ApplyQueues(queues, {access.caller().user, call.dry_run()});
        if (!done) return tl::unexpected(done.error());
        DocNode node = MapNode();
        Put(node, "applied", std::move(list));
        if (call.dry_run()) Put(node, "dry_run", model::BoolNode(true));
        return Changed{std::move(node), std::move(traces)};
      },
      may_apply);
}

void GetQueue(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    auto queue = QueueNamed(control, access, call.Path("queue"));
    if (!queue) return tl::unexpected(queue.error());
    return Answer(control::QueueView(control, **queue), TagOfQueue(**queue));
  });
}

void PutQueue(Desk& desk, const Call& call) {
  auto decoded = DecodeOneQueue(call.request->body, call.Path("queue"));
  if (!decoded) return ReplyError(*call.exchange, decoded.error());
  desk.Change(
      call, 200,
      [call, queue = std::move(*decoded)](Controller& control,
                                          const Access& access) -> Result<Changed> {
        if (auto may = MayApply(access, queue); !may) return tl::unexpected(may.error());
        const auto known = QueueNamed(control, access, queue.name);
        if (auto same = CheckMatch(call, known ? TagOfQueue(**known) : ""); !same) {
          return tl::unexpected(same.error());
        }
        auto before = known ? FileOf(**known) : "";
        auto done = control.ApplyQueues({queue}, {access.caller().user, call.dry_run()});
        if (!done) return tl::unexpected(done.error());
        Changed changed{Answer(BareView(queue), TagOfQueue(queue)),
                        {{"queue " + queue.name, queue.name, std::move(before), FileOf(queue)}}};
        if (call.dry_run()) return changed;
        // Shares are those that the scheduler has worked out with it.
        changed.later = [queue](Controller& after) {
          const auto& queues = after.state().queues();
          const auto now = std::find_if(queues.begin(), queues.end(),
                                        [&](const auto& one) { return one.name == queue.name; });
          const auto& shown = now == queues.end() ? queue : *now;
          return Answer(control::QueueView(after, shown), TagOfQueue(shown));
        };
        return changed;
      });
}

void DeleteQueue(Desk& desk, const Call& call) {
  desk.Change(call, 200, [call](Controller& control, const Access& access) -> Result<Changed> {
    const auto& name = call.Path("queue");
    auto queue = QueueNamed(control, access, name);
    if (!queue) return tl::unexpected(queue.error());
    if (auto may = MayApply(access, **queue); !may) return tl::unexpected(may.error());
    if (auto same = CheckMatch(call, TagOfQueue(**queue)); !same) {
      return tl::unexpected(same.error());
    }
    auto before = FileOf(**queue);
    const auto parent = (*queue)->parent;
    auto done = control.DeleteQueue(name, {access.caller().user, call.dry_run()});
    if (!done) return tl::unexpected(done.error());
    return Acted(call, name, {"queue " + name, parent, std::move(before), ""});
  });
}

}  // namespace muster::api
