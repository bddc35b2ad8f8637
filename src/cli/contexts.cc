#include "cli/contexts.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/files.h"
#include "model/document.h"
#include "model/document_writer.h"

namespace muster::cli {
namespace {

constexpr const char* kLook = "`muster config view` shows them, `muster login URL` adds one";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string TextOf(const model::DocNode& map, std::string_view key) {
  const auto* found = map.Find(key);
  return found != nullptr && found->kind == model::DocKind::kScalar ? found->text : "";
}

tl::unexpected<Error> CannotWrite(const std::string& path, int reason) {
  auto error = WriteError(path, reason);
  error.message = "the contexts cannot be stored: " + error.message;
  return tl::unexpected(std::move(error));
}

// With mode 0600 from its first byte on.
Result<void> WritePrivate(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return CannotWrite(path, errno);
  int reason = ::fchmod(file, 0600) == 0 ? 0 : errno;
  while (reason == 0 && !text.empty()) {
    const auto written = ::write(file, text.data(), text.size());
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) reason = errno;
  }
  if (reason == 0 && ::fsync(file) != 0) reason = errno;
  if (::close(file) != 0 && reason == 0) reason = errno;
  if (reason != 0) return CannotWrite(path, reason);
  return {};
}

}  // namespace

std::string ContextPath() {
  if (const auto folder = Environment("XDG_CONFIG_HOME"); folder.starts_with('/')) {
    return folder + "/muster/config.yaml";
  }
  std::string home = Environment("HOME");
  if (home.empty()) {
    const passwd* account = ::getpwuid(::geteuid());
    home = account == nullptr ? "/" : account->pw_dir;
  }
  return home + "/.config/muster/config.yaml";
}

Result<ContextFile> ReadContexts(const std::string& path) {
  ContextFile out;
  auto text = ReadFile(path, std::size_t{1} << 20);
  if (!text) {
    if (text.error().code == ErrorCode::kNotFound) return out;
    return tl::unexpected(text.error());
  }
  model::Problems problems;
  const auto documents = model::ParseDocuments(*text, problems);
  if (problems.HasErrors()) {
    return Fail(ErrorCode::kInvalid, path + ": " + model::Describe(problems.Sorted().front()),
                "repair the file, or remove it and log in again");
  }
  if (documents.empty()) return out;
  out.current = TextOf(documents.front(), "current");
  const auto* contexts = documents.front().Find("contexts");
  if (contexts == nullptr) return out;
  bool secret = false;
  for (const auto& one : contexts->children) {
    out.contexts[one.key] = {TextOf(one, "server"), TextOf(one, "token"), TextOf(one, "ca")};
    secret |= !out.contexts[one.key].token.empty();
  }
  struct stat facts {};
  if (secret && ::stat(path.c_str(), &facts) == 0 && (facts.st_mode & 077U) != 0) {
    return Fail(ErrorCode::kDenied, path + " holds tokens, and others may read it",
                "chmod 600 " + path + ", and revoke the tokens if somebody has");
  }
  return out;
}

Result<void> WriteContexts(const std::string& path, const ContextFile& file) {
  auto root = model::MapNode();
  model::Put(root, "current", model::TextNode(file.current));
  auto& contexts = model::Put(root, "contexts", model::MapNode());
  for (const auto& [name, context] : file.contexts) {
    auto& one = model::Put(contexts, name, model::MapNode());
    model::Put(one, "server", model::TextNode(context.server));
    if (!context.token.empty()) model::Put(one, "token", model::TextNode(context.token));
    if (!context.ca.empty()) model::Put(one, "ca", model::TextNode(context.ca));
  }
  std::error_code failed;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!std::filesystem::exists(folder, failed)) {
    std::filesystem::create_directories(folder, failed);
    if (failed) return CannotWrite(folder.string(), failed.value());
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, failed);
  }
  const std::string fresh = path + "." + std::to_string(::getpid());
  auto written = WritePrivate(fresh, model::WriteYaml(root));
  if (written && ::rename(fresh.c_str(), path.c_str()) != 0) written = CannotWrite(path, errno);
  if (!written) ::unlink(fresh.c_str());
  return written;
}

Result<Settings> ResolveSettings(const ServerFlags& flags) {
  const auto path = ContextPath();
  const auto daemon = Environment("MUSTER_DAEMON"), token = Environment("MUSTER_TOKEN");
  const auto named = Environment("MUSTER_CONTEXT");
  Setting context{"context", "", "default"}, server{"server", "", ""};
  Settings out;
  std::string own_token, own_origin = "default";
  if (!flags.socket.empty()) {
    server = {"server", flags.socket, "flag --socket"};
  } else if (flags.context.empty() && !daemon.empty()) {
    server = {"server", daemon, "environment MUSTER_DAEMON"};
  } else {
    const auto file = ReadContexts(path);
    if (!file) return tl::unexpected(file.error());
    context = !flags.context.empty()   ? Setting{"context", flags.context, "flag --context"}
              : !named.empty()         ? Setting{"context", named, "environment MUSTER_CONTEXT"}
              : !file->current.empty() ? Setting{"context", file->current, "file " + path}
                                       : context;
    if (!context.value.empty()) {
      const auto found = file->contexts.find(context.value);
      if (found == file->contexts.end()) {
        return Fail(ErrorCode::kNotFound,
                    "there is no context \"" + context.value + "\" (" + context.origin + ")",
                    kLook);
      }
      if (found->second.server.empty()) {
        return Fail(ErrorCode::kInvalid, "context \"" + context.value + "\" has no server",
                    "give it one in " + path);
      }
      server = {"server", found->second.server, "file " + path};
      out.target.ca = found->second.ca;
      own_token = found->second.token;
      if (!own_token.empty()) own_origin = server.origin;
    }
  }
  if (server.value.empty()) server = {"server", client::DefaultSocket(), "default"};
  if (!token.empty()) {
    own_token = token;
    own_origin = "environment MUSTER_TOKEN";
  }
  out.target.server = server.value;
  out.target.token = own_token;
  out.all = {
      {"file", path,
       Environment("XDG_CONFIG_HOME").starts_with('/') ? "environment XDG_CONFIG_HOME" : "default"},
      context,
      server,
      {"token", own_token.empty() ? "none" : "set", own_origin},
      {"ca", out.target.ca, out.target.ca.empty() ? "default" : server.origin}};
  return out;
}

}  // namespace muster::cli
