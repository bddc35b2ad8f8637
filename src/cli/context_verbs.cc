// Which daemon is meant: login and config.
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

struct LoginWords {
  std::string server, ca, name;
  bool token_stdin = false;
};

// "https://gpu.example.org:7400" is called gpu.example.org.
std::string NameOf(const std::string& server) {
  const auto begin = server.find("://");
  if (begin == std::string::npos) return "local";
  auto host = server.substr(begin + 3);
  return host.substr(0, host.find_first_of(":/"));
}

std::string WithoutSpace(const std::string& line) {
  const auto begin = line.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_last_not_of(" \t\r\n") - begin + 1);
}

// What is typed is not shown. Ctrl-C ends the line and the program; getpass() would take it for a
// character of the token.
std::string ReadUnseen(const char* prompt) {
  termios before{};
  ::tcgetattr(STDIN_FILENO, &before);
  termios unseen = before;
  unseen.c_lflag &= ~static_cast<tcflag_t>(ECHO | ISIG);
  unseen.c_cc[VEOL] = before.c_cc[VINTR];
  std::cerr << prompt << std::flush;
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &unseen);
  std::array<char, 4096> line{};
  const auto got = ::read(STDIN_FILENO, line.data(), line.size());
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
  std::cerr << '\n';
  std::string text(line.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  if (!text.empty() && text.back() == static_cast<char>(before.c_cc[VINTR])) ::raise(SIGINT);
  return text;
}

Result<std::string> ReadToken(bool from_stdin) {
  std::string line;
  if (from_stdin) {
    std::getline(std::cin, line);
  } else if (::isatty(STDIN_FILENO) == 1) {
    line = ReadUnseen("token: ");
  } else {
    return Fail(ErrorCode::kUsage, "a token is needed for a server that is not a socket",
                "give it on standard input with --token-stdin");
  }
  line = WithoutSpace(line);
  if (line.empty()) {
    return Fail(ErrorCode::kUsage, "the token is empty", "`muster token create NAME` makes one");
  }
  return line;
}

// Stored only after the server has said who we are there.
int Login(const LoginWords& words, Output output) {
  const auto& url = words.server;
  if (!url.starts_with("https://") && !url.starts_with("http://") && !url.starts_with("unix:") &&
      !url.starts_with('/')) {
    return Refuse({ErrorCode::kUsage, "\"" + url + "\" is no URL of a daemon",
                   "write https://gpu.example.org:7400, or unix:/path/of/musterd.sock"});
  }
  Context context{words.server, "", ""};
  client::Target target{words.server};
  if (words.token_stdin || !target.local()) {
    auto token = ReadToken(words.token_stdin);
    if (!token) return Refuse(token.error());
    context.token = *token;
  }
  if (!words.ca.empty()) context.ca = std::filesystem::absolute(words.ca).string();
  target.token = context.token;
  target.ca = context.ca;
  Session session(target, output);
  const auto who = session.client().Get("whoami");
  if (!who) return Refuse(who.error());
  const auto path = ContextPath();
  auto file = ReadContexts(path);
  if (!file) return Refuse(file.error());
  const auto name = words.name.empty() ? NameOf(words.server) : words.name;
  file->contexts[name] = context;
  file->current = name;
  if (auto written = WriteContexts(path, *file); !written) return Refuse(written.error());
  return session.Show(*who, [&](const Json& got) {
    std::cout << "logged in to " << words.server << " as " << got.value("user", "") << "; context "
              << name << " is the current one\n";
  });
}

Error NoContext(const std::string& name) {
  return {ErrorCode::kNotFound, "there is no context \"" + name + "\"",
          "`muster config view` shows them, `muster login URL` adds one"};
}

int View(Verbs& verbs, bool origins) {
  const auto settings = ResolveSettings(verbs.common().flags);
  if (!settings) return Refuse(settings.error());
  const auto file = ReadContexts(ContextPath());
  if (!file) return Refuse(file.error());
  nlohmann::ordered_json shown;
  for (const auto& one : settings->all) {
    shown["settings"].push_back({{"name", one.name}, {"value", one.value}});
    if (origins) shown["settings"].back()["origin"] = one.origin;
  }
  shown["contexts"] = nlohmann::ordered_json::array();
  for (const auto& [name, context] : file->contexts) {
    shown["contexts"].push_back({{"name", name},
                                 {"server", context.server},
                                 {"token", context.token.empty() ? "none" : "set"},
                                 {"ca", context.ca},
                                 {"current", name == file->current}});
  }
  const auto output = verbs.common().output;
  if (output == Output::kJsonl) shown.erase("contexts");  // one list, a row a line
  Session session(settings->target, output);
  return session.Show(shown.dump(2), [&](const Json&) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& one : settings->all) {
      rows.push_back({one.name, one.value.empty() ? "-" : one.value});
      if (origins) rows.back().push_back(one.origin);
    }
    session.Table(origins ? std::vector<std::string>{"SETTING", "VALUE", "ORIGIN"}
                          : std::vector<std::string>{"SETTING", "VALUE"},
                  rows);
    if (file->contexts.empty()) return;
    rows.clear();
    for (const auto& [name, context] : file->contexts) {
      rows.push_back({name == file->current ? "*" : "", name, context.server,
                      context.token.empty() ? "none" : "set"});
    }
    std::cout << '\n';
    session.Table({"", "CONTEXT", "SERVER", "TOKEN"}, rows);
  });
}

// What became of a context, for programs; people are told on standard error.
int ShowContext(Output output, const std::string& name, const Context& context, bool current) {
  if (ForPeople(output)) return 0;
  const nlohmann::ordered_json shown = {{"id", name},
                                        {"name", name},
                                        {"server", context.server},
                                        {"token", context.token.empty() ? "none" : "set"},
                                        {"ca", context.ca},
                                        {"current", current}};
  return ShowDocument(output, shown.dump(2));
}

int Use(const std::string& name, Output output) {
  const auto path = ContextPath();
  auto file = ReadContexts(path);
  if (!file) return Refuse(file.error());
  if (!file->contexts.contains(name)) return Refuse(NoContext(name));
  file->current = name;
  if (auto written = WriteContexts(path, *file); !written) return Refuse(written.error());
  std::cerr << "context " << name << " is the current one\n";
  return ShowContext(output, name, file->contexts.at(name), true);
}

// A context that nothing refers to any more.
void Forget(ContextFile& file, const std::string& name) {
  file.contexts.erase(name);
  if (file.current == name) file.current.clear();
}

int Delete(const std::string& name, Output output) {
  const auto path = ContextPath();
  auto file = ReadContexts(path);
  if (!file) return Refuse(file.error());
  if (!file->contexts.contains(name)) return Refuse(NoContext(name));
  const bool was_current = file->current == name;
  const auto context = file->contexts.at(name);
  Forget(*file, name);
  if (auto written = WriteContexts(path, *file); !written) return Refuse(written.error());
  std::cerr << "deleted context " << name
            << (was_current ? "; now the daemon of this machine is meant\n" : "\n");
  return ShowContext(output, name, context, false);
}

// Takes the context and its token out of the file; the token itself lives until it is revoked.
int Logout(const std::string& named, Output output) {
  const auto path = ContextPath();
  auto file = ReadContexts(path);
  if (!file) return Refuse(file.error());
  const auto name = named.empty() ? file->current : named;
  const auto found = file->contexts.find(name);
  if (name.empty()) {
    return Refuse({ErrorCode::kNotFound, "there is no current context to log out of",
                   "`muster config view` shows them"});
  }
  if (found == file->contexts.end()) return Refuse(NoContext(name));
  const auto context = found->second;
  Forget(*file, name);
  if (auto written = WriteContexts(path, *file); !written) return Refuse(written.error());
  std::cerr << "logged out of " << context.server << "; context " << name << " is gone\n";
  if (!context.token.empty()) {
    std::cerr << "its token still works until it expires: `muster token revoke` ends it\n";
  }
  return ShowContext(output, name, context, false);
}

}  // namespace

void AddContextVerbs(Verbs& verbs) {
  auto w = std::make_shared<LoginWords>();
  auto* login = verbs.AddLocal(verbs.app(), "login", "Use a daemon elsewhere from now on",
                               "muster login https://gpu.example.org:7400 --token-stdin < token",
                               [w, &verbs] { return Login(*w, verbs.common().output); });
  verbs.Formats(login);
  verbs.Changes(login);
  AddOption(login, "URL", w->server, "https://host:port, or unix:/path").Required();
  AddFlag(login, "--token-stdin", w->token_stdin, "read the token from standard input");
  AddOption(login, "--ca", w->ca, "PEM file that signs the server's certificate");
  AddOption(login, "--name", w->name, "name of the context; default: the host");
  auto name = std::make_shared<std::string>();
  auto* logout =
      verbs.AddLocal(verbs.app(), "logout", "Forget a context and its token", "muster logout lab",
                     [name, &verbs] { return Logout(*name, verbs.common().output); });
  AddOption(logout, "CONTEXT", *name, "default: the current one");
  CLI::App* config = verbs.Group("config", "What muster goes by");
  auto origins = std::make_shared<bool>(false);
  auto* view = verbs.AddLocal(config, "view", "Every setting; tokens are not shown",
                              "muster config view --origins",
                              [origins, &verbs] { return View(verbs, *origins); });
  AddFlag(view, "--origins", *origins, "and where it comes from");
  verbs.Formats(view);
  verbs.ServerFlagsFor(view);
  auto* use =
      verbs.AddLocal(config, "use", "Make a context the current one", "muster config use lab",
                     [name, &verbs] { return Use(*name, verbs.common().output); });
  AddOption(use, "CONTEXT", *name, "its name").Required();
  auto* forget = verbs.AddLocal(config, "delete", "Remove a context, with its token",
                                "muster config delete lab",
                                [name, &verbs] { return Delete(*name, verbs.common().output); });
  AddOption(forget, "CONTEXT", *name, "its name").Required();
  for (auto* command : {logout, use, forget}) {
    verbs.Formats(command);
    verbs.Changes(command);
  }
}

}  // namespace muster::cli
