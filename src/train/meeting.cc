#include "train/meeting.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/files.h"
#include "base/secret.h"
#include "train/members/folder_store.h"
#include "train/members/tcp_store.h"
#include "train/mesh/address.h"

namespace muster::train {
namespace {

constexpr std::size_t kLeastSecretBytes = 16;
constexpr std::size_t kMostSecretBytes = 4096;
constexpr std::int64_t kMostTimeoutMs = std::int64_t{1} << 30U;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string SecretFileOfEnvironment() { return Variable("MUSTER_TRAIN_SECRET_FILE"); }

// Empty: there is none.
Result<std::string> ReadSecret(const std::string& file) {
  std::string secret = Variable("MUSTER_TRAIN_SECRET");
  if (!file.empty()) {
    auto text = ReadFile(file, kMostSecretBytes);
    if (!text) return text;
    secret = std::move(*text);
  }
  secret.erase(secret.find_last_not_of(" \t\r\n") + 1);
  const auto* const where = file.empty() ? "MUSTER_TRAIN_SECRET" : file.c_str();
  if (!file.empty() && secret.empty()) {
    return Fail(ErrorCode::kInvalid, fmt::format("there is no secret in {}", where),
                "write one: openssl rand -hex 32");
  }
  if (!secret.empty() && (secret.size() < kLeastSecretBytes || secret.size() > kMostSecretBytes)) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("the secret in {} has {} characters", where, secret.size()),
                fmt::format("give {} to {}, as openssl rand -hex 32 does", kLeastSecretBytes,
                            kMostSecretBytes));
  }
  return secret;
}

tl::unexpected<Error> NoSecret() {
  return Fail(ErrorCode::kUsage, "a store needs the secret of the job",
              "give --secret-file, or set MUSTER_TRAIN_SECRET_FILE or MUSTER_TRAIN_SECRET");
}

}  // namespace

MeetingFlags MeetingOfEnvironment() {
  MeetingFlags out;
  if (const auto job_dir = Variable("MUSTER_JOB_DIR"); !job_dir.empty()) {
    out.folder = job_dir + "/train";
  }
  out.store = Variable("MUSTER_TRAIN_STORE");
  out.secret_file = SecretFileOfEnvironment();
  out.address = Variable("MUSTER_TRAIN_ADDRESS");
  return out;
}

void AddMeetingFlags(CLI::App& app, MeetingFlags& flags) {
  app.add_option("--folder", flags.folder, "where the workers of the job meet");
  app.add_option("--store", flags.store, "HOST:PORT of a store, in place of a folder");
  app.add_option("--secret-file", flags.secret_file, "the secret of the job, for a store");
  app.add_option("--address", flags.address,
                 "of this worker, for the others\n"
                 "(with a store: the one on the way to it; else 127.0.0.1)");
}

Result<std::unique_ptr<Store>> Meet(const MeetingFlags& flags, MeshOptions& mesh,
                                    const std::atomic<bool>& leave) {
  auto secret = ReadSecret(flags.secret_file);
  if (!secret) return tl::unexpected(secret.error());
  mesh.secret = std::move(*secret);
  if (const auto host = SplitAddress(flags.address).host; host == "0.0.0.0" || host == "::") {
    return Fail(ErrorCode::kInvalid,
                fmt::format("--address {}: others cannot connect to that", flags.address),
                "give the address of this machine that the others reach");
  }
  if (!flags.address.empty()) mesh.address = flags.address;
  if (flags.store.empty()) {
    auto store = std::make_unique<FolderStore>(flags.folder + "/members");
    if (!mesh.secret.empty()) return store;
    auto drawn = store->Claim("secret", NewSecretHex(32));
    if (!drawn) return tl::unexpected(drawn.error());
    mesh.secret = std::move(*drawn);
    return store;
  }
  if (mesh.secret.empty()) return NoSecret();
  auto store = TcpStore::Open({flags.store, mesh.secret, mesh.timeout_ms},
                              kStorePatience * mesh.timeout_ms, leave);
  if (!store) return tl::unexpected(store.error());
  if (flags.address.empty()) mesh.address = (*store)->here();
  return std::move(*store);
}

CLI::App* AddStoreCommand(CLI::App& app, StoreFlags& flags) {
  flags.secret_file = SecretFileOfEnvironment();
  auto* const command = app.add_subcommand(
      "store", "Keeps what the workers of one job agree on, for those that see no common folder.");
  command->add_option("--folder", flags.server.folder, "where it is kept")->required();
  command->add_option("--address", flags.server.address,
                      "HOST[:PORT] to listen on; without a port: that of last time, or any");
  command->add_option("--secret-file", flags.secret_file, "the secret of the job");
  command
      ->add_option("--timeout-ms", flags.server.timeout_ms,
                   "within which who connects must prove itself")
      ->check(CLI::Range(kLeastTimeoutMs, kMostTimeoutMs));
  return command;
}

Result<std::unique_ptr<StoreServer>> OpenStore(const StoreFlags& flags) {
  auto secret = ReadSecret(flags.secret_file);
  if (!secret) return tl::unexpected(secret.error());
  if (secret->empty()) return NoSecret();
  std::error_code failed;  // is said by what is written there
  std::filesystem::create_directories(flags.server.folder, failed);
  StoreServerOptions options = flags.server;
  options.secret = std::move(*secret);
  return StoreServer::Open(options);
}

}  // namespace muster::train
