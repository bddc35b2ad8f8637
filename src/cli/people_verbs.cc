// Who may come in: tokens and users.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

struct TokenWords {
  std::string name, user, expires = "90d", role;
};

int CreateToken(Session& session, const TokenWords& words) {
  Json body = {{"name", words.name}, {"expires", words.expires}};
  if (!words.user.empty()) body["user"] = words.user;
  if (!words.role.empty()) body["role"] = words.role;
  const auto text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto answer = session.client().Post("tokens", {}, text);
  const int status =
      session.Show(answer, [](const Json& got) { std::cout << got.value("secret", "") << '\n'; });
  if (status != 0) return status;
  const auto got = Json::parse(*answer);
  std::cerr
      << "token " << got.value("id", "") << " of " << got.value("user", "")
      << (got.contains("expires_at") ? " ends " + got.value("expires_at", "") : "")
      << ". It is not shown again: keep it like a password.\n"
      << "Use it with `muster login URL --token-stdin` or $MUSTER_TOKEN; `muster token revoke "
      << got.value("id", "") << "` ends it.\n";
  return 0;
}

int ListTokens(Session& session) {
  return session.Show(
      session.client().Get("tokens"), {"ID", "NAME", "USER", "ROLE", "MADE", "ENDS"},
      [](const Json& got) {
        Rows rows;
        for (const auto& one : got.at("tokens")) {
          rows.push_back({one.value("id", ""), one.value("name", ""), one.value("user", ""),
                          one.value("role", "all"), Clock(TimeMs(one, "created_at")),
                          one.contains("expires_at") ? Clock(TimeMs(one, "expires_at")) : "never"});
        }
        return rows;
      });
}

int RevokeTokens(Session& session, const std::vector<std::string>& ids) {
  int status = 0;
  nlohmann::ordered_json document;
  for (const auto& id : ids) {
    const auto answer = session.client().Delete("tokens/" + id);
    if (!answer) {
      status = Refuse(answer.error());
      continue;
    }
    document["tokens"].push_back(nlohmann::ordered_json::parse(Acted(*answer)));
  }
  if (document.is_null()) return status;
  const int shown = session.Show(document.dump(2), [](const Json& got) {
    for (const auto& one : got.at("tokens")) {
      std::cout << "revoked token " << one.value("id", "") << '\n';
    }
  });
  return status != 0 ? status : shown;
}

struct UserWords {
  std::string name, role;
  std::vector<std::string> groups;
};

int ListUsers(Session& session) {
  return session.Show(session.client().Get("users"), {"USER", "ROLE", "GROUPS"},
                      [](const Json& got) {
                        Rows rows;
                        for (const auto& one : got.at("users")) {
                          std::string groups;
                          for (const auto& group : one.at("groups")) {
                            groups += (groups.empty() ? "" : ", ") + Plain(group);
                          }
                          rows.push_back({one.value("name", ""), one.value("role", ""), groups});
                        }
                        return rows;
                      });
}

int SetUser(Session& session, const UserWords& words) {
  const Json body = {{"role", words.role}, {"groups", words.groups}};
  const auto text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  auto answer = session.client().Call("PUT", "users/" + words.name, {}, text, {});
  if (!answer) return Refuse(answer.error());
  return session.Show(Acted(answer->body), [&](const Json& got) {
    std::cout << "user " << got.value("name", "") << " is " << words.role << '\n';
  });
}

int RemoveUser(Session& session, const std::string& name) {
  const auto answer = session.client().Delete("users/" + name);
  if (!answer) return Refuse(answer.error());
  return session.Show(Acted(*answer), [](const Json& got) {
    std::cout << "user " << got.value("name", "")
              << " has no role of its own any more, and no tokens\n";
  });
}

void AddTokenVerbs(Verbs& verbs) {
  CLI::App* token = verbs.Group("token", "Tokens for calls over a network");
  auto w = std::make_shared<TokenWords>();
  auto* create = verbs.Add(token, "create", "Make a token; its secret is shown once",
                           "muster token create laptop --expires 30d --role viewer",
                           [w](Session& s) { return CreateToken(s, *w); });
  create->add_option("NAME", w->name, "what it is for")->required();
  create->add_option("--user", w->user, "another user's, for admins");
  create->add_option("--expires", w->expires, "from now on; default 90d; never: admins only");
  create->add_option("--role", w->role, "viewer or user: no more than this")
      ->check(CLI::IsMember({"viewer", "user"}));
  verbs.IsList(
      verbs.Add(token, "list", "My tokens; for admins all", "muster token list", ListTokens));
  auto ids = std::make_shared<std::vector<std::string>>();
  auto* revoke = verbs.Add(token, "revoke", "End tokens at once", "muster token revoke 3f9a21",
                           [ids](Session& s) { return RevokeTokens(s, *ids); });
  IsName(revoke->add_option("ID", *ids, "as `muster token list` shows")->required(), "token");
}

void AddUserVerbs(Verbs& verbs) {
  CLI::App* user = verbs.Group("user", "Users with a role of their own");
  auto w = std::make_shared<UserWords>();
  verbs.IsList(verbs.Add(user, "list", "List users", "muster user list", ListUsers));
  auto* set = verbs.Add(user, "set", "Give a user a role everywhere, and groups",
                        "muster user set ana --role user --group vision",
                        [w](Session& s) { return SetUser(s, *w); });
  IsName(set->add_option("NAME", w->name, "the user")->required(), "user");
  set->add_option("--role", w->role, "none, viewer, user or admin")
      ->required()
      ->check(CLI::IsMember({"none", "viewer", "user", "admin"}));
  set->add_option("--group", w->groups,
                  "a group; may be given several times; replaces those there");
  auto* remove =
      verbs.Add(user, "remove", "Take the role away, and the user's tokens",
                "muster user remove ana", [w](Session& s) { return RemoveUser(s, w->name); });
  IsName(remove->add_option("NAME", w->name, "the user")->required(), "user");
}

}  // namespace

void AddPeopleVerbs(Verbs& verbs) {
  AddTokenVerbs(verbs);
  AddUserVerbs(verbs);
}

}  // namespace muster::cli
