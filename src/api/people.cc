#include "api/people.h"

#include <algorithm>
#include <array>

#include "api/tokens.h"
#include "base/units.h"
#include "control/view_parts.h"
#include "model/fields.h"
#include "model/problems.h"
#include "model/utf8.h"

namespace muster::api {

using control::TimeNode;
using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

constexpr std::int64_t kDefaultLimit = 200;
constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::size_t kLongestName = 100;
constexpr std::size_t kMostRows = 5'000;  // of the trail, looked at for one page

tl::unexpected<Error> Wrong(const std::string& key, const std::string& what,
                            const std::string& hint) {
  Error error{ErrorCode::kInvalid, what, hint};
  error.path = key;
  return tl::unexpected(std::move(error));
}

// The body as a map of these keys and no others.
Result<DocNode> MapOf(const Call& call, const std::vector<std::string>& keys) {
  model::Problems problems;
  auto documents = model::ParseDocuments(call.request->body, problems);
  if (problems.HasErrors()) return tl::unexpected(model::ToError(problems));
  if (documents.size() != 1 || documents[0].kind != model::DocKind::kMap) {
    return Fail(ErrorCode::kInvalid, "the body is not a map");
  }
  for (const auto& child : documents[0].children) {
    if (std::find(keys.begin(), keys.end(), child.key) != keys.end()) continue;
    std::string list;
    for (const auto& key : keys) list += (list.empty() ? "" : ", ") + key;
    return Wrong(child.key, "there is no key \"" + child.key + "\" here", "there are: " + list);
  }
  return std::move(documents[0]);
}

std::string TextOf(const DocNode& node, std::string_view key) {
  const auto* found = node.Find(key);
  return found == nullptr ? "" : found->text;
}

bool IsTitle(std::string_view name) {
  if (name.empty() || name.size() > kLongestName) return false;
  while (!name.empty()) {
    const auto length = model::CharacterLength(name);
    if (length == 0 || model::IsControl(name)) return false;
    name.remove_prefix(length);
  }
  return true;
}

bool IsName(std::string_view name) {
  return IsTitle(name) && name.find_first_of(" /") == std::string_view::npos;
}

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

std::string UserText(Controller& control, const std::string& name) {
  const auto found = control.state().users().find(name);
  if (found == control.state().users().end()) return "";
  DocNode node = UserNode(found->second);
  std::vector<std::string> tokens;
  for (const auto& [id, token] : control.state().tokens()) {
    if (token.user == name) tokens.push_back(id);
  }
  Put(node, "tokens", model::TextListNode(tokens));
  return model::WriteJson(node);
}

Changed Acted(const Call& call, const std::string& id, const std::string& object,
              std::string before, std::string after) {
  DocNode node = MapNode();
  Put(node, "id", TextNode(id));
  if (call.dry_run()) Put(node, "dry_run", model::BoolNode(true));
  return {std::move(node), {{object, "", std::move(before), std::move(after)}}};
}

}  // namespace

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

void PutUser(Desk& desk, const Call& call) {
  auto body = MapOf(call, {"role", "groups"});
  if (!body) return ReplyError(*call.exchange, body.error());
  model::UserSet user;
  user.name = call.Path("user");
  user.role = TextOf(*body, "role");
  constexpr std::array<std::string_view, 4> kRoles = {"none", "viewer", "user", "admin"};
  if (std::find(kRoles.begin(), kRoles.end(), user.role) == kRoles.end()) {
    return ReplyError(*call.exchange, {ErrorCode::kInvalid, "\"" + user.role + "\" is no role",
                                       "none, viewer, user or admin; roles on queues are `members` "
                                       "of a queue file",
                                       "role"});
  }
  if (!IsName(user.name)) {
    return ReplyError(*call.exchange, {ErrorCode::kInvalid, "that is no name of a user",
                                       "up to 100 characters without spaces", "user"});
  }
  if (const auto* groups = body->Find("groups")) {
    for (const auto& group : groups->children) user.groups.push_back(group.text);
  }
  const bool keeps_groups = body->Find("groups") == nullptr;
  desk.Change(
      call, 200,
      [call, user, keeps_groups](Controller& control, const Access& access) -> Result<Changed> {
        auto before = UserText(control, user.name);
        auto set = user;
        set.by = access.caller().user;
        const auto known = control.state().users().find(user.name);
        if (keeps_groups && known != control.state().users().end()) {
          set.groups = known->second.groups;
        }
        if (!call.dry_run()) {
          if (auto done = control.SetUser(set); !done) return tl::unexpected(done.error());
        }
        return Acted(call, user.name, "user " + user.name, std::move(before),
                     UserText(control, user.name));
      });
}

void DeleteUser(Desk& desk, const Call& call) {
  desk.Change(call, 200, [call](Controller& control, const Access& access) -> Result<Changed> {
    const auto& name = call.Path("user");
    auto before = UserText(control, name);
    auto done = control.RemoveUser(name, {access.caller().user, call.dry_run()});
    if (!done) return tl::unexpected(done.error());
    return Acted(call, name, "user " + name, std::move(before), "");
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

void CreateToken(Desk& desk, const Call& call) {
  auto body = MapOf(call, {"name", "user", "expires", "role"});
  if (!body) return ReplyError(*call.exchange, body.error());
  desk.Change(
      call, 201,
      [call, body = std::move(*body)](Controller& control,
                                      const Access& access) -> Result<Changed> {
        const auto& caller = access.caller();
        model::TokenMade made;
        made.name = TextOf(body, "name");
        made.user = TextOf(body, "user").empty() ? caller.user : TextOf(body, "user");
        made.role = TextOf(body, "role");
        made.by = caller.user;
        if (!IsTitle(made.name)) {
          return Wrong("name", "a token needs a name of up to 100 printable characters",
                       "where it is used");
        }
        if (!IsName(made.user)) {
          return Wrong("user", "that is no name of a user", "up to 100 characters without spaces");
        }
        if (!made.role.empty() && made.role != "viewer" && made.role != "user") {
          return Wrong("role", "\"" + made.role + "\" is no role for a token", "viewer or user");
        }
        // Nobody gets more from a token than it has: a capped caller makes capped ones.
        if (caller.cap < control::Role::kAdmin &&
            (made.role.empty() || control::ParseRole(made.role) > caller.cap)) {
          made.role = std::string(Name(caller.cap));
        }
        if (made.user != caller.user) {
          if (auto may = access.MayAdministerAll(); !may) return tl::unexpected(may.error());
        }
        const auto expires = TextOf(body, "expires").empty() ? "90d" : TextOf(body, "expires");
        if (expires == "never") {
          if (auto may = access.MayAdministerAll(); !may) return tl::unexpected(may.error());
        } else {
          const auto span = ParseDurationMs(expires);
          if (!span || *span <= 0 || *span > 3650 * kDayMs) {
            return Wrong("expires", "\"" + expires + "\" is no time span", "90d, at most 3650d");
          }
          made.expires_ms = control.NowMs() + *span;
        }
        // Nor does it last longer than the one it was made with.
        if (const auto with = control.state().tokens().find(call.token);
            with != control.state().tokens().end() && with->second.expires_ms != 0) {
          made.expires_ms = made.expires_ms == 0
                                ? with->second.expires_ms
                                : std::min(made.expires_ms, with->second.expires_ms);
        }
        const auto token = NewToken();
        made.id = token.id;
        made.hash = HashOf(token.secret);
        if (auto done = control.MakeToken(made); !done) return tl::unexpected(done.error());
        DocNode node = TokenNode(control.state().tokens().at(made.id));
        auto after = model::WriteJson(node);
        Put(node, "secret", TextNode(token.Text()));
        return Changed{std::move(node), {{"token " + made.id, "", "", std::move(after)}}};
      });
}

void RevokeToken(Desk& desk, const Call& call) {
  desk.Change(call, 200, [call](Controller& control, const Access& access) -> Result<Changed> {
    const auto& id = call.Path("token");
    const auto found = control.state().tokens().find(id);
    const auto& tokens = control.state().tokens();
    const bool mine =
        found != tokens.end() && (access.IsAdmin() || found->second.user == access.caller().user);
    // One that is capped may end itself and its like, and no stronger one.
    const auto cap = access.caller().cap;
    const bool stronger =
        mine && id != call.token && cap < control::Role::kAdmin &&
        (found->second.role.empty() || control::ParseRole(found->second.role) > cap);
    if (stronger) {
      return Fail(ErrorCode::kDenied, "token " + id + " may do more than the one you call with",
                  "revoke it on the machine itself, or with a token without a role");
    }
    if (!mine) {
      return Fail(ErrorCode::kNotFound, "there is no token " + id,
                  "`muster token list` shows yours");
    }
    auto before = model::WriteJson(TokenNode(found->second));
    auto done = control.RevokeToken(id, {access.caller().user, call.dry_run()});
    if (!done) return tl::unexpected(done.error());
    return Acted(call, id, "token " + id, std::move(before), "");
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
