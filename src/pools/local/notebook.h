// Notebook: what `template: jupyter` runs.
//
// Whichever of Jupyter's servers is installed, on 127.0.0.1, with a port of the job's own and a
// token that only the worker's environment and a file of the daemon's hold: a command line could be
// read by everybody on the machine. Where none is installed the worker ends with 127, which is told
// as what it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pools/pool.h"

namespace muster::pools {

std::vector<std::string> NotebookCommand(int port);
inline constexpr const char* kNotebookToken = "JUPYTER_TOKEN";  // the variable that it reads

// Kept beside the launch's lock, for this daemon's user alone.
Result<void> KeepNotebook(const std::string& run_dir, const Notebook& notebook);
std::optional<Notebook> FindNotebook(const std::string& run_dir);

}  // namespace muster::pools
