#include "pools/local/notebook.h"

#include <fcntl.h>
#include <unistd.h>

#include <sstream>

#include "base/files.h"

namespace muster::pools {
namespace {

constexpr const char* kFile = "/notebook";

// The port is $1. Variables and programs of the user's own come behind those of the system.
constexpr const char* kScript = R"sh(
PATH="$PATH:$HOME/.local/bin"; export PATH
for server in jupyter-lab jupyter-notebook jupyter-server; do
  command -v "$server" >/dev/null 2>&1 || continue
  echo "$server on 127.0.0.1:$1 of this node; \`muster port-forward\` opens it" >&2
  # Not each request: its address holds the token.
  set -- "$server" --ip=127.0.0.1 --port="$1" --port-retries=0 --no-browser --log-level=WARN
  [ "$(id -u)" != 0 ] || set -- "$@" --allow-root
  exec "$@"
done
echo "Jupyter is not installed here: no jupyter-lab, jupyter-notebook or jupyter-server in $PATH" >&2
exit 127
)sh";

}  // namespace

std::vector<std::string> NotebookCommand(int port) {
  return {"/bin/sh", "-c", kScript, "notebook", std::to_string(port)};
}

Result<void> KeepNotebook(const std::string& run_dir, const Notebook& notebook) {
  const std::string path = run_dir + kFile;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const std::string text = std::to_string(notebook.port) + " " + notebook.token + "\n";
  const bool written =
      fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) ::close(fd);
  if (written) return {};
  return Fail(ErrorCode::kUnavailable, "cannot write " + path, "check the disk's free space");
}

std::optional<Notebook> FindNotebook(const std::string& run_dir) {
  const auto text = ReadFile(run_dir + kFile, 256);
  if (!text) return std::nullopt;
  Notebook notebook;
  std::istringstream fields(*text);
  if (!(fields >> notebook.port >> notebook.token)) return std::nullopt;
  return notebook;
}

}  // namespace muster::pools
