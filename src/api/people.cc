#include "api/people.h"

#include <algorithm>
#include <optional>

#include "base/units.h"
#include "control/view_parts.h"
#include "model/fields.h"
#include "model/problems.h"

namespace muster::api {

using control::TimeNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

constexpr std::size_t kLeastRows = 50;  // of the trail, read at once
constexpr std::size_t kRowsAtOnce = 200;
constexpr std::size_t kMostRows = 5'000;  // looked at for one page

}  // namespace

DocNode TokenNode(const state::TokenRecord& token, std::int64_t now_ms) {
  const bool over = token.expires_ms != 0 && token.expires_ms <= now_ms;
  DocNode node = control::ObjectNode(token.id, token.name), spec = MapNode(), status = MapNode();
  Put(spec, "user", TextNode(token.user));
  if (!token.role.empty()) Put(spec, "role", TextNode(token.role));
  if (token.expires_ms != 0) Put(spec, "expires_at", TimeNode(token.expires_ms));
  Put(status, "phase", TextNode(over ? "expired" : "valid"));
  Put(node, "spec", std::move(spec));
  Put(node, "status", std::move(status));
  control::PutAge(node, token.created_ms, token.revision);
  return node;
}

DocNode SpecOf(const state::UserRecord& user) {
  DocNode spec = MapNode();
  Put(spec, "role", TextNode(user.role));
  Put(spec, "groups", model::TextListNode(user.groups));
  return spec;
}

DocNode UserNode(const state::UserRecord& user, std::int64_t tokens) {
  DocNode node = control::ObjectNode(user.name, user.name), status = MapNode();
  Put(status, "tokens", NumberNode(tokens));
  Put(node, "spec", SpecOf(user));
  Put(node, "status", std::move(status));
  control::PutAge(node, user.created_ms, user.revision);
  return node;
}

void GetUser(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access&) -> Result<Answer> {
    const auto found = control.state().users().find(call.Path("user"));
    if (found == control.state().users().end()) {
      return Fail(ErrorCode::kNotFound, "user " + call.Path("user") + " has no role of its own",
                  "`muster user list` shows who has");
    }
    const auto& tokens = control.state().tokens();
    const auto count = std::count_if(tokens.begin(), tokens.end(), [&](const auto& one) {
      return one.second.user == found->first;
    });
    return Answer(UserNode(found->second, count), TagOf(found->second.revision));
  });
}

const state::TokenRecord* TokenOf(Controller& control, const Access& access,
                                  const std::string& id) {
  const auto found = control.state().tokens().find(id);
  if (found == control.state().tokens().end()) return nullptr;
  const bool mine = access.IsAdmin() || found->second.user == access.caller().user;
  return mine ? &found->second : nullptr;
}

tl::unexpected<Error> NoToken(const std::string& id) {
  return Fail(ErrorCode::kNotFound, "there is no token " + id, "`muster token list` shows yours");
}

void GetToken(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    const auto* token = TokenOf(control, access, call.Path("token"));
    if (token == nullptr) return NoToken(call.Path("token"));
    return Answer(TokenNode(*token, control.NowMs()), TagOf(token->revision));
  });
}

void ListUsers(Desk& desk, const Call& call) {
  desk.List(call, [](Controller& control, const Access&) {
    std::map<std::string, std::int64_t> tokens;
    for (const auto& [id, token] : control.state().tokens()) ++tokens[token.user];
    std::vector<DocNode> list;
    for (const auto& [name, user] : control.state().users()) {
      list.push_back(UserNode(user, tokens[name]));
    }
    return list;
  });
}

void ListTokens(Desk& desk, const Call& call) {
  desk.List(call, [](Controller& control, const Access& access) {
    std::vector<DocNode> list;
    for (const auto& [id, token] : control.state().tokens()) {
      if (!access.IsAdmin() && token.user != access.caller().user) continue;
      list.push_back(TokenNode(token, control.NowMs()));
    }
    return list;
  });
}

namespace {

// What `muster user set` or the kernel gives it, on whatever queue; none: neither does.
std::optional<control::Role> RoleEverywhere(const state::State& state, const Access& access) {
  if (access.IsAdmin()) return control::Role::kAdmin;
  const auto& caller = access.caller();
  if (caller.is_root) return caller.cap;
  const auto known = state.users().find(caller.user);
  if (known == state.users().end()) return std::nullopt;
  return std::min(control::ParseRole(known->second.role), caller.cap);
}

}  // namespace

void WhoAmI(Desk& desk, const Call& call) {
  desk.Read(call, [](Controller& control, const Access& access) -> Result<Answer> {
    DocNode node = MapNode(), roles = MapNode();
    Put(node, "user", TextNode(access.caller().user));
    Put(node, "groups", model::TextListNode(access.groups()));
    Put(node, "from", TextNode(access.caller().from));
    Put(node, "admin", model::BoolNode(access.IsAdmin()));
    if (const auto role = RoleEverywhere(control.state(), access)) {
      Put(node, "role", TextNode(Name(*role)));
    }
    for (const auto& queue : control.state().queues()) {
      const auto role = access.On(queue.name);
      if (role > control::Role::kNone) Put(roles, queue.name, TextNode(Name(role)));
    }
    Put(node, "roles", std::move(roles));
    return node;
  });
}

namespace {

DocNode AuditNode(const state::AuditRow& row) {
  DocNode node = MapNode();
  Put(node, "id", NumberNode(static_cast<std::int64_t>(row.id)));
  Put(node, "at", TimeNode(row.at_ms));
  Put(node, "user", TextNode(row.who));
  Put(node, "from", TextNode(row.from));
  Put(node, "operation", TextNode(row.what));
  Put(node, "object", TextNode(row.object));
  if (!row.queue.empty()) Put(node, "queue", TextNode(row.queue));
  for (const auto& [key, text] : {std::pair("before", &row.before), {"after", &row.after}}) {
    model::Problems problems;
    auto documents = model::ParseDocuments(*text, problems);
    if (!documents.empty()) Put(node, key, std::move(documents[0]));
  }
  return node;
}

// Rows of queues that the caller does not administer are passed over.
bool MayRead(const Access& access, const state::AuditRow& row) {
  return access.IsAdmin() || row.who == access.caller().user ||
         (!row.queue.empty() && access.On(row.queue) >= control::Role::kQueueAdmin);
}

Result<Answer> AuditPage(Controller& control, const Access& access, const Selection& selection,
                         state::AuditQuery query) {
  query.limit = std::clamp(selection.limit() + 1, kLeastRows, kRowsAtOnce);
  std::vector<DocNode> list;
  std::uint64_t next = 0;
  std::size_t bytes = 0;
  for (std::size_t looked = 0; next == 0; looked += query.limit) {
    if (looked >= kMostRows) {
      next = query.before;
      break;
    }
    auto rows = control.store().Audit(query);
    if (!rows) return tl::unexpected(rows.error());
    for (const auto& row : *rows) {
      if (MayRead(access, row)) {
        auto item = AuditNode(row);
        const bool wanted = selection.Holds(item);
        if (wanted && (list.size() == selection.limit() || bytes > kMostPageBytes)) {
          next = query.before;
          break;
        }
        if (wanted) {
          bytes += row.before.size() + row.after.size();
          list.push_back(selection.Shown(std::move(item)));
        }
      }
      query.before = row.id;
    }
    if (rows->size() < query.limit) break;
  }
  return selection.Answer(std::move(list), next == 0 ? "" : std::to_string(next),
                          control.state().revision());
}

}  // namespace

void ListAudit(Desk& desk, const Call& call) {
  const auto back_ms = ParseDurationMs(call.Text("since"));
  if (!call.Text("since").empty() && !back_ms) {
    return ReplyError(*call.exchange, {ErrorCode::kUsage, "parameter \"since\" is no time span",
                                       "write it like 24h or 7d", "since"});
  }
  auto selection = SelectionOf(call);
  if (!selection) return ReplyError(*call.exchange, selection.error());
  const auto cursor = selection->NumberInCursor();
  if (!cursor) return ReplyError(*call.exchange, cursor.error());
  desk.Read(call, [call, back_ms, cursor = *cursor, selection = std::move(*selection)](
                      Controller& control, const Access& access) {
    state::AuditQuery query;
    query.who = call.Text("user");
    query.object = call.Text("object");
    query.what = call.Text("operation");
    query.since_ms = back_ms ? control.NowMs() - *back_ms : 0;
    query.before = cursor.value_or(0);
    return AuditPage(control, access, selection, std::move(query));
  });
}

}  // namespace muster::api
