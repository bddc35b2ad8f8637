// Users and tokens: making, changing and removing them.
#include <algorithm>
#include <array>

#include "api/people.h"
#include "api/tokens.h"
#include "base/units.h"
#include "control/view_parts.h"
#include "model/fields.h"
#include "model/paths.h"
#include "model/problems.h"
#include "model/utf8.h"

namespace muster::api {

using control::TimeNode;
using model::MapNode;
using model::Put;
using model::TextNode;

namespace {

constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::size_t kLongestName = 100;
constexpr std::array<std::string_view, 4> kRoles = {"none", "viewer", "user", "admin"};
constexpr std::array<std::string_view, 2> kTokenRoles = {"viewer", "user"};

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

constexpr const char* kNameRule = "up to 100 printable characters without spaces and slashes";

template <typename Wish>
Result<Wish> Done(const std::vector<DocNode>& documents, model::Problems& problems, Wish wish) {
  if (!problems.HasErrors()) return wish;
  LocateProblems(documents, problems);
  return tl::unexpected(model::ToError(problems));
}

struct UserWish {
  std::string role;
  std::vector<std::string> groups;
  bool has_groups = false;
};

Result<UserWish> DecodeUser(const Call& call) {
  model::Problems problems;
  const std::vector<DocNode> documents = {BodyMap(call, problems)};
  if (problems.HasErrors()) return tl::unexpected(model::ToError(problems));
  UserWish wish;
  model::MapReader reader(documents[0], "a user", problems);
  if (const auto* role = reader.Require("role", "none, viewer, user or admin")) {
    if (const auto found = model::ReadChoice(*role, kRoles, problems)) wish.role = kRoles[*found];
  }
  if (const auto* groups = reader.Take("groups")) {
    wish.has_groups = true;
    const bool none = groups->kind == model::DocKind::kSequence && groups->children.empty();
    if (!none) {
      wish.groups =
          model::ReadNameList(*groups, IsName, "the name of a group", kNameRule, problems);
    }
  }
  reader.Finish();
  return Done(documents, problems, std::move(wish));
}

struct TokenWish {
  std::string name, user, role;
  std::int64_t lasts_ms = 90 * kDayMs;  // 0: for ever
};

Result<TokenWish> DecodeToken(const Call& call) {
  model::Problems problems;
  const std::vector<DocNode> documents = {BodyMap(call, problems)};
  if (problems.HasErrors()) return tl::unexpected(model::ToError(problems));
  TokenWish wish;
  wish.user = call.caller.user;
  model::MapReader reader(documents[0], "a token", problems);
  if (const auto* name = reader.Require("name", "`\"name\": \"laptop\"`, where it is used")) {
    wish.name = model::ReadMatching(*name, IsTitle, "the name of a token",
                                    "up to 100 printable characters", problems)
                    .value_or("");
  }
  if (const auto* user = reader.Take("user")) {
    wish.user =
        model::ReadMatching(*user, IsName, "the name of a user", kNameRule, problems).value_or("");
  }
  if (const auto* role = reader.Take("role")) {
    if (const auto found = model::ReadChoice(*role, kTokenRoles, problems)) {
      wish.role = kTokenRoles[*found];
    }
  }
  if (const auto* expires = reader.Take("expires")) {
    const auto span = ParseDurationMs(expires->text);
    if (expires->text == "never") {
      wish.lasts_ms = 0;
    } else if (span && *span > 0 && *span <= 3650 * kDayMs) {
      wish.lasts_ms = *span;
    } else {
      problems.Error(expires->mark, model::Quoted(expires->text) + " is no time span",
                     "90d, at most 3650d; or never");
    }
  }
  reader.Finish();
  return Done(documents, problems, std::move(wish));
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

std::string TagOfUser(Controller& control, const std::string& name) {
  const auto found = control.state().users().find(name);
  return found == control.state().users().end() ? "" : TagOf(found->second.revision);
}

// What a token made now would be: nobody gets more from it than it has.
Result<model::TokenMade> Bounded(Controller& control, const Access& access, const Call& call,
                                 const TokenWish& wish) {
  const auto& caller = access.caller();
  model::TokenMade made;
  made.name = wish.name;
  made.user = wish.user;
  made.role = wish.role;
  made.by = caller.user;
  // A capped caller makes capped ones.
  if (caller.cap < control::Role::kAdmin &&
      (made.role.empty() || control::ParseRole(made.role) > caller.cap)) {
    made.role = std::string(Name(caller.cap));
  }
  if (made.user != caller.user || wish.lasts_ms == 0) {
    if (auto may = access.MayAdministerAll(); !may) return tl::unexpected(may.error());
  }
  if (wish.lasts_ms != 0) made.expires_ms = control.NowMs() + wish.lasts_ms;
  // Nor does it last longer than the one it was made with.
  if (const auto with = control.state().tokens().find(call.token);
      with != control.state().tokens().end() && with->second.expires_ms != 0) {
    made.expires_ms = made.expires_ms == 0 ? with->second.expires_ms
                                           : std::min(made.expires_ms, with->second.expires_ms);
  }
  return made;
}

}  // namespace

void PutUser(Desk& desk, const Call& call) {
  auto wish = DecodeUser(call);
  if (!wish) return ReplyError(*call.exchange, wish.error());
  if (!IsName(call.Path("user"))) {
    return ReplyError(*call.exchange,
                      {ErrorCode::kInvalid, "that is no name of a user", kNameRule, "user"});
  }
  desk.Change(call, 200,
              [call, wish = std::move(*wish)](Controller& control,
                                              const Access& access) -> Result<Changed> {
                const auto& name = call.Path("user");
                auto same = CheckMatch(call, TagOfUser(control, name));
                if (!same) return tl::unexpected(same.error());
                auto before = UserText(control, name);
                model::UserSet set{name, wish.role, wish.groups, access.caller().user};
                const auto known = control.state().users().find(name);
                if (!wish.has_groups && known != control.state().users().end()) {
                  set.groups = known->second.groups;
                }
                if (!call.dry_run()) {
                  if (auto done = control.SetUser(set); !done) return tl::unexpected(done.error());
                }
                return Acted(call, name,
                             {"user " + name, "", std::move(before), UserText(control, name)},
                             TagOfUser(control, name));
              });
}

void DeleteUser(Desk& desk, const Call& call) {
  desk.Change(call, 200, [call](Controller& control, const Access& access) -> Result<Changed> {
    const auto& name = call.Path("user");
    auto before = UserText(control, name);
    if (!before.empty()) {
      auto same = CheckMatch(call, TagOfUser(control, name));
      if (!same) return tl::unexpected(same.error());
    }
    auto done = control.RemoveUser(name, {access.caller().user, call.dry_run()});
    if (!done) return tl::unexpected(done.error());
    return Acted(call, name, {"user " + name, "", std::move(before), ""});
  });
}

void CreateToken(Desk& desk, const Call& call) {
  auto wish = DecodeToken(call);
  if (!wish) return ReplyError(*call.exchange, wish.error());
  desk.Change(
      call, 201,
      [call, wish = *wish](Controller& control, const Access& access) -> Result<Changed> {
        auto made = Bounded(control, access, call, wish);
        if (!made) return tl::unexpected(made.error());
        const auto token = NewToken();
        made->id = token.id;
        made->hash = HashOf(token.secret);
        if (auto done = control.MakeToken(*made, call.dry_run()); !done) {
          return tl::unexpected(done.error());
        }
        if (call.dry_run()) {
          DocNode node = MapNode(), spec = MapNode();
          Put(node, "name", TextNode(made->name));
          Put(spec, "user", TextNode(made->user));
          if (!made->role.empty()) Put(spec, "role", TextNode(made->role));
          if (made->expires_ms != 0) Put(spec, "expires_at", TimeNode(made->expires_ms));
          Put(node, "spec", std::move(spec));
          Put(node, "dry_run", model::BoolNode(true));
          return Changed{std::move(node), {}};
        }
        DocNode node = TokenNode(control.state().tokens().at(made->id), control.NowMs());
        auto after = model::WriteJson(node);
        Put(node, "secret", TextNode(token.Text()));
        Changed changed{std::move(node), {{"token " + made->id, "", "", std::move(after)}}};
        changed.once = true;
        return changed;
      },
      [call, wish = *wish](Controller& control, const Access& access) -> Result<void> {
        auto bounded = Bounded(control, access, call, wish);
        if (!bounded) return tl::unexpected(bounded.error());
        return {};
      });
}

void RevokeToken(Desk& desk, const Call& call) {
  desk.Change(call, 200, [call](Controller& control, const Access& access) -> Result<Changed> {
    const auto& id = call.Path("token");
    const auto* token = TokenOf(control, access, id);
    if (token == nullptr) return NoToken(id);
    // One that is capped may end itself and its like, and no stronger one.
    const auto cap = access.caller().cap;
    const bool stronger = id != call.token && cap < control::Role::kAdmin &&
                          (token->role.empty() || control::ParseRole(token->role) > cap);
    if (stronger) {
      return Fail(ErrorCode::kDenied, "token " + id + " may do more than the one you call with",
                  "revoke it on the machine itself, or with a token without a role");
    }
    if (auto same = CheckMatch(call, TagOf(token->revision)); !same) {
      return tl::unexpected(same.error());
    }
    auto before = model::WriteJson(TokenNode(*token, control.NowMs()));
    auto done = control.RevokeToken(id, {access.caller().user, call.dry_run()});
    if (!done) return tl::unexpected(done.error());
    return Acted(call, id, {"token " + id, "", std::move(before), ""});
  });
}

}  // namespace muster::api
