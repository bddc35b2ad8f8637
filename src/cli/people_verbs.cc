// Who may come in: tokens and users.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

// How a change is to be made.
struct How {
  bool dry_run = false, yes = false;

  client::Client::Query Query() const {
    client::Client::Query query;
    if (dry_run) query["dry_run"] = "1";
    return query;
  }
  void MayTry(CLI::App* command) {
    command->add_flag("--dry-run", dry_run, "check everything and change nothing");
  }
  void MayAsk(CLI::App* command) {
    command->add_flag("-y,--yes", yes, "do not ask");
    MayTry(command);
  }
  // 0: go on; else what to end with.
  int Ask(const std::string& question) const {
    const auto sure = Confirm(question, yes || dry_run);
    if (!sure) return Refuse(sure.error());
    if (*sure) return 0;
    std::cerr << "nothing was changed\n";
    return 1;
  }
};

struct TokenWords {
  std::string name, user, expires = "90d", role;
  std::vector<std::string> ids;
  How how;
};

int CreateToken(Session& session, const TokenWords& words) {
  Json body = {{"name", words.name}, {"expires", words.expires}};
  if (!words.user.empty()) body["user"] = words.user;
  if (!words.role.empty()) body["role"] = words.role;
  const auto text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto answer = session.client().Post("tokens", words.how.Query(), text);
  if (words.how.dry_run) {
    return session.Show(answer, [](const Json& got) {
      std::cout << "would make token " << got.value("name", "") << " of "
                << got.at("spec").value("user", "") << '\n';
    });
  }
  const int status =
      session.Show(answer, [](const Json& got) { std::cout << got.value("secret", "") << '\n'; });
  if (status != 0) return status;
  const auto got = Json::parse(*answer);
  const auto& spec = got.at("spec");
  std::cerr
      << "token " << got.value("id", "") << " of " << spec.value("user", "")
      << (spec.contains("expires_at") ? " ends " + spec.value("expires_at", "") : "")
      << ". It is not shown again: keep it like a password.\n"
      << "Use it with `muster login URL --token-stdin` or $MUSTER_TOKEN; `muster token revoke "
      << got.value("id", "") << "` ends it.\n";
  return 0;
}

int ListTokens(Session& session) {
  return session.Show(
      session.List("tokens"), {"ID", "NAME", "USER", "ROLE", "MADE", "ENDS"}, [](const Json& got) {
        Rows rows;
        for (const auto& one : got.at("tokens")) {
          const auto& spec = one.at("spec");
          rows.push_back(
              {one.value("id", ""), one.value("name", ""), spec.value("user", ""),
               spec.value("role", "all"), Clock(TimeMs(one, "created_at")),
               spec.contains("expires_at") ? Clock(TimeMs(spec, "expires_at")) : "never"});
        }
        return rows;
      });
}

int RevokeTokens(Session& session, const TokenWords& words) {
  const auto& ids = words.ids;
  const auto what = ids.size() == 1 ? "token " + ids[0] : std::to_string(ids.size()) + " tokens";
  if (const int stop = words.how.Ask("Revoke " + what + "?"); stop != 0) return stop;
  int status = 0;
  nlohmann::ordered_json document;
  for (const auto& id : ids) {
    const auto answer = session.client().Delete("tokens/" + id, words.how.Query());
    if (!answer) {
      status = Refuse(answer.error());
      continue;
    }
    document["tokens"].push_back(nlohmann::ordered_json::parse(Acted(*answer)));
  }
  if (document.is_null()) return status;
  const int shown = session.Show(document.dump(2), [](const Json& got) {
    for (const auto& one : got.at("tokens")) {
      std::cout << (one.value("dry_run", false) ? "would revoke token " : "revoked token ")
                << one.value("id", "") << '\n';
    }
  });
  return status != 0 ? status : shown;
}

struct UserWords {
  std::string name, role;
  std::vector<std::string> groups;
  How how;
};

int ListUsers(Session& session) {
  return session.Show(session.List("users"), {"USER", "ROLE", "GROUPS"}, [](const Json& got) {
    Rows rows;
    for (const auto& one : got.at("users")) {
      std::string groups;
      const auto& spec = one.at("spec");
      for (const auto& group : spec.at("groups")) {
        groups += (groups.empty() ? "" : ", ") + Plain(group);
      }
      rows.push_back({one.value("name", ""), spec.value("role", ""), groups});
    }
    return rows;
  });
}

int SetUser(Session& session, const UserWords& words) {
  const Json body = {{"role", words.role}, {"groups", words.groups}};
  const auto text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  auto answer = session.client().Call("PUT", "users/" + words.name, words.how.Query(), text, {});
  if (!answer) return Refuse(answer.error());
  return session.Show(Acted(answer->body), [&](const Json& got) {
    std::cout << "user " << got.value("name", "") << (words.how.dry_run ? " would be " : " is ")
              << words.role << '\n';
  });
}

int RemoveUser(Session& session, const UserWords& words) {
  const int stop = words.how.Ask("Remove user " + words.name + " and its tokens?");
  if (stop != 0) return stop;
  const auto answer = session.client().Delete("users/" + words.name, words.how.Query());
  if (!answer) return Refuse(answer.error());
  return session.Show(Acted(*answer), [](const Json& got) {
    std::cout << "user " << got.value("name", "")
              << (got.value("dry_run", false) ? " would have" : " has")
              << " no role of its own any more, and no tokens\n";
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
  w->how.MayTry(create);
  verbs.IsList(
      verbs.Add(token, "list", "My tokens; for admins all", "muster token list", ListTokens));
  auto* revoke =
      verbs.Add(token, "revoke", "End tokens at once", "muster token revoke 3f9a21 --yes",
                [w](Session& s) { return RevokeTokens(s, *w); });
  IsName(revoke->add_option("ID", w->ids, "as `muster token list` shows")->required(), "token");
  w->how.MayAsk(revoke);
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
  w->how.MayTry(set);
  auto* remove =
      verbs.Add(user, "remove", "Take the role away, and the user's tokens",
                "muster user remove ana --yes", [w](Session& s) { return RemoveUser(s, *w); });
  IsName(remove->add_option("NAME", w->name, "the user")->required(), "user");
  w->how.MayAsk(remove);
}

}  // namespace

void AddPeopleVerbs(Verbs& verbs) {
  AddTokenVerbs(verbs);
  AddUserVerbs(verbs);
}

}  // namespace muster::cli
