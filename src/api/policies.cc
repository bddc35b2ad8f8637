// Policies: how the scheduler decides, read by all and changed by admins.
#include "api/cluster.h"
#include "control/views.h"

namespace muster::api {

using model::MapNode;
using model::Put;
using model::TextNode;

namespace {

std::string Tag(std::uint64_t revision) { return revision == 0 ? "\"default\"" : TagOf(revision); }

std::string TagOfPolicy(Controller& control) { return Tag(control::PolicyRevision(control)); }

// Applies or undoes by `act`, unless what is in force has changed since it was read.
template <typename Act>
Result<Changed> ChangePolicy(const Call& call, Controller& control, const Access& access, Act act) {
  if (auto same = CheckMatch(call, TagOfPolicy(control)); !same) {
    return tl::unexpected(same.error());
  }
  auto before = control::PolicyText(control);
  const auto revision = control::PolicyRevision(control);
  const control::By by{access.caller().user, call.dry_run()};
  auto next = act(control, control::By{access.caller().user, true});
  if (!next) return tl::unexpected(next.error());
  DocNode node = MapNode();
  const auto id = std::to_string(next->id);
  Put(node, "id", TextNode(id));
  Put(node, "name", TextNode(next->name.empty() ? id : next->name));
  Put(node, "changes", control::PolicyChanges(control, next->settings));
  if (next->undoes != 0) Put(node, "undoes", TextNode(std::to_string(next->undoes)));
  if (call.dry_run()) {
    Put(node, "dry_run", model::BoolNode(true));
  } else if (auto done = act(control, by); !done) {
    return tl::unexpected(done.error());
  }
  std::vector<Trace> traces;
  if (control::PolicyRevision(control) != revision) {
    traces.push_back({"policy " + id, "", std::move(before), control::PolicyText(control)});
  }
  return Changed{Answer(std::move(node), TagOfPolicy(control)), std::move(traces)};
}

}  // namespace

// The one in force first, unless another order is wanted.
void ListPolicies(Desk& desk, const Call& call) {
  Call ordered = call;
  if (call.Text("sort").empty()) {
    auto request = *call.request;
    request.query["sort"] = "-revision";
    ordered.request = std::make_shared<const net::Request>(std::move(request));
  }
  desk.List(ordered,
            [](Controller& control, const Access&) { return control::PoliciesView(control); });
}

void GetPolicy(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access&) -> Result<Answer> {
    auto node = control::PolicyView(control, call.Path("policy"));
    if (!node) return tl::unexpected(node.error());
    const auto revision = std::stoull(node->Find("revision")->text);
    return Answer(std::move(*node), Tag(revision));
  });
}

void ApplyPolicy(Desk& desk, const Call& call) {
  auto file = control::ReadPolicyFile(call.request->body);
  if (!file) return ReplyError(*call.exchange, file.error());
  desk.Change(
      call, 200, [call, file = std::move(*file)](Controller& control, const Access& access) {
        return ChangePolicy(call, control, access, [&file](Controller& to, const control::By& by) {
          return to.ApplyPolicy(file, by);
        });
      });
}

void UndoPolicy(Desk& desk, const Call& call) {
  desk.Change(call, 200, [call](Controller& control, const Access& access) -> Result<Changed> {
    const auto& policy = call.Path("policy");
    auto meant = control::PolicyView(control, policy);
    if (!meant) return tl::unexpected(meant.error());
    if (meant->Find("status")->Find("in_force")->text != "true") {
      return Fail(ErrorCode::kConflict, "policy " + policy + " is not in force",
                  "only that one can be undone; `muster policy list` shows which it is");
    }
    return ChangePolicy(call, control, access,
                        [](Controller& to, const control::By& by) { return to.UndoPolicy(by); });
  });
}

}  // namespace muster::api
