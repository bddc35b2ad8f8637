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
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::size_t kLongestName = 100;
constexpr std::size_t kLeastRows = 50;  // of the trail, read at once
constexpr std::size_t kRowsAtOnce = 1'000;
constexpr std::size_t kMostRows = 5'000;  // looked at for one page

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

std::string UserText(Controller& control, const std::string& name) {
  const auto found = control.state().users().find(name);
  if (found == control.state().users().end()) return "";
  DocNode node = SpecOf(found->second);
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
  desk.List(call, [](Controller& control, const Access& access) {
    std::vector<DocNode> list;
    for (const auto& [id, token] : control.state().tokens()) {
      if (!access.IsAdmin() && token.user != access.caller().user) continue;
      list.push_back(TokenNode(token, control.NowMs()));
    }
    return list;
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
        DocNode node = TokenNode(control.state().tokens().at(made.id), control.NowMs());
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
    auto before = model::WriteJson(TokenNode(found->second, control.NowMs()));
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
        if (wanted && list.size() == selection.limit()) {
          next = query.before;
          break;
        }
        if (wanted) list.push_back(selection.Shown(std::move(item)));
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
