// Meeting: where the workers of a job meet: in a folder that all see, or at a store.
//
// The command line says it, or the environment where that is silent, so that whatever starts
// workers on many hosts can start them all alike. The secret of the job is never part of a command
// line, which everybody on a host can read: it comes in a file or in the environment.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/result.h"
#include "train/members/store.h"
#include "train/members/store_server.h"
#include "train/mesh/mesh.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}

namespace muster::train {

struct MeetingFlags {
  std::string folder;
  std::string store;        // its address; empty: the folder
  std::string secret_file;  // empty: from the environment
  std::string address;      // of this worker; empty: the one on the way to the store
};

// What the environment says.
MeetingFlags MeetingOfEnvironment();
void AddMeetingFlags(CLI::App& app, MeetingFlags& flags);

// Sets the secret and the address that the mesh shall have.
Result<std::unique_ptr<Store>> Meet(const MeetingFlags& flags, MeshOptions& mesh,
                                    const std::atomic<bool>& leave);

// `muster-train store`.
struct StoreFlags {
  StoreServerOptions server;
  std::string secret_file;
};
CLI::App* AddStoreCommand(CLI::App& app, StoreFlags& flags);
Result<std::unique_ptr<StoreServer>> OpenStore(const StoreFlags& flags);

}  // namespace muster::train
