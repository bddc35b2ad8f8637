#include "api/people.h"

#include "base/units.h"
#include "control/view_parts.h"
#include "model/fields.h"
#include "model/problems.h"

namespace muster::api {

using control::TimeNode;
using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

constexpr std::int64_t kDefaultLimit = 200;
constexpr std::size_t kMostRows = 5'000;  // of the trail, looked at for one page

}  // namespace

DocNode TokenNode(const state::TokenRecord& token) {
  DocNode node = MapNode();
  Put(node, "id", TextNode(token.id));
  Put(node, "name", TextNode(token.name));
  Put(node, "user", TextNode(token.user));
  if (!token.role.empty()) Put(node, "role", TextNode(token.role));
  Put(node, "created_at", TimeNode(token.created_ms));
  if (token.expires_ms != 0) Put(node, "expires_at", TimeNode(token.expires_ms));
  return node;
}

DocNode UserNode(const state::UserRecord& user) {
  DocNode node = MapNode();
  Put(node, "name", TextNode(user.name));
  Put(node, "role", TextNode(user.role));
  Put(node, "groups", model::TextListNode(user.groups));
  return node;
}

void GetUser(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access&) -> Result<Answer> {
    const auto found = control.state().users().find(call.Path("user"));
    if (found == control.state().users().end()) {
      return Fail(ErrorCode::kNotFound, "user " + call.Path("user") + " has no role of its own",
                  "`muster user list` shows who has");
    }
    return Answer(UserNode(found->second), TagOf(found->second.revision));
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
    return Answer(TokenNode(*token), TagOf(token->revision));
  });
}

void ListUsers(Desk& desk, const Call& call) {
  desk.Read(call, [](Controller& control, const Access&) -> Result<Answer> {
    DocNode list = ListNode();
    for (const auto& [name, user] : control.state().users()) {
      list.children.push_back(UserNode(user));
    }
    DocNode node = MapNode();
    Put(node, "users", std::move(list));
    return node;
  });
}

void ListTokens(Desk& desk, const Call& call) {
  desk.Read(call, [](Controller& control, const Access& access) -> Result<Answer> {
    DocNode list = ListNode();
    for (const auto& [id, token] : control.state().tokens()) {
      if (!access.IsAdmin() && token.user != access.caller().user) continue;
      list.children.push_back(TokenNode(token));
    }
    DocNode node = MapNode();
    Put(node, "tokens", std::move(list));
    return node;
  });
}

void WhoAmI(Desk& desk, const Call& call) {
  desk.Read(call, [](Controller& control, const Access& access) -> Result<Answer> {
    DocNode node = MapNode(), roles = MapNode();
    Put(node, "user", TextNode(access.caller().user));
    Put(node, "groups", model::TextListNode(access.groups()));
    Put(node, "from", TextNode(access.caller().from));
    Put(node, "admin", model::BoolNode(access.IsAdmin()));
    for (const auto& queue : control.state().queues()) {
      const auto role = access.On(queue.name);
      if (role > control::Role::kNone) Put(roles, queue.name, TextNode(Name(role)));
    }
    Put(node, "roles", std::move(roles));
    return node;
  });
}

void ListAudit(Desk& desk, const Call& call) {
  const auto back_ms = ParseDurationMs(call.Text("since"));
  if (!call.Text("since").empty() && !back_ms) {
    return ReplyError(*call.exchange, {ErrorCode::kUsage, "parameter \"since\" is no time span",
                                       "write it like 24h or 7d", "since"});
  }
  const auto cursor = model::ParseWhole(call.Text("cursor"));
  if (!call.Text("cursor").empty() && !cursor) {
    return ReplyError(*call.exchange, {ErrorCode::kUsage, "this is no cursor of this list",
                                       "take `next` of the page before", "cursor"});
  }
  desk.Read(
      call, [call, back_ms, cursor](Controller& control, const Access& access) -> Result<Answer> {
        const auto limit = static_cast<std::size_t>(call.Number("limit", kDefaultLimit));
        state::AuditQuery query;
        query.who = call.Text("user");
        query.object = call.Text("object");
        query.what = call.Text("operation");
        query.since_ms = back_ms ? control.NowMs() - *back_ms : 0;
        query.before = static_cast<std::uint64_t>(cursor.value_or(0));
        query.limit = limit;
        DocNode list = ListNode();
        bool more = true;
        // Rows of queues that the caller does not administer are passed over.
        for (std::size_t looked = 0; more && list.children.size() < limit && looked < kMostRows;) {
          auto rows = control.store().Audit(query);
          if (!rows) return tl::unexpected(rows.error());
          more = rows->size() == limit;
          looked += rows->size();
          for (const auto& row : *rows) {
            query.before = row.id;
            const bool readable =
                access.IsAdmin() || row.who == access.caller().user ||
                (!row.queue.empty() && access.On(row.queue) >= control::Role::kQueueAdmin);
            if (!readable) continue;
            DocNode node = MapNode();
            Put(node, "id", NumberNode(static_cast<std::int64_t>(row.id)));
            Put(node, "at", TimeNode(row.at_ms));
            Put(node, "user", TextNode(row.who));
            Put(node, "from", TextNode(row.from));
            Put(node, "operation", TextNode(row.what));
            Put(node, "object", TextNode(row.object));
            if (!row.queue.empty()) Put(node, "queue", TextNode(row.queue));
            for (const auto& [key, text] :
                 {std::pair("before", &row.before), {"after", &row.after}}) {
              model::Problems problems;
              auto documents = model::ParseDocuments(*text, problems);
              if (!documents.empty()) Put(node, key, std::move(documents[0]));
            }
            list.children.push_back(std::move(node));
            if (list.children.size() == limit) break;
          }
        }
        DocNode node = MapNode();
        Put(node, "audit", std::move(list));
        if (more) Put(node, "next", TextNode(std::to_string(query.before)));
        return node;
      });
}

}  // namespace muster::api
