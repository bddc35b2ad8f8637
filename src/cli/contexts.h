// Contexts: which daemon is meant, with which token, and who said so.
//
// A flag goes before the environment, that before the file, that before the default. A token that
// stands in the file goes only to the server it stands beside. The file is the user's alone (0600)
// and replaced as a whole.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/client.h"

namespace muster::cli {

struct Context {
  std::string server;
  std::string token;
  std::string ca;
};

struct ContextFile {
  std::string current;
  std::map<std::string, Context> contexts;
};

// $XDG_CONFIG_HOME/muster/config.yaml, or under ~/.config.
std::string ContextPath();
// A file that is not there has no contexts.
Result<ContextFile> ReadContexts(const std::string& path);
Result<void> WriteContexts(const std::string& path, const ContextFile& file);

struct ServerFlags {
  std::string socket;   // --socket
  std::string context;  // --context
};

struct Setting {
  std::string name;
  std::string value;   // of a token only whether there is one
  std::string origin;  // "flag --context", "environment MUSTER_DAEMON", "file ...", "default"
};

struct Settings {
  client::Target target;
  std::vector<Setting> all;
};

Result<Settings> ResolveSettings(const ServerFlags& flags);

}  // namespace muster::cli
