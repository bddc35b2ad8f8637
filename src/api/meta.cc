#include "api/meta.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/units.h"
#include "net/tls.h"

namespace muster::api {

using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

DocNode Status(const char* status) {
  DocNode node = MapNode();
  Put(node, "status", TextNode(status));
  return node;
}

}  // namespace

void GetHealth(Desk& desk, const Call& call) {
  desk.service().Read([call](Controller&) { ReplyNode(*call.exchange, Status("ok"), 200); });
}

// An empty change: it is answered when the store takes it.
void GetReady(Desk& desk, const Call& call) {
  desk.service().Change([](Controller&) {},
                        [call](const Result<void>& written) {
                          if (!written) return ReplyError(*call.exchange, written.error());
                          ReplyNode(*call.exchange, Status("ready"), 200);
                        });
}

namespace {

DocNode Folder(const std::string& path) {
  DocNode node = MapNode();
  Put(node, "path", TextNode(path));
  std::error_code failed;
  const auto room = std::filesystem::space(path, failed);
  if (failed) return node;
  Put(node, "free_bytes", NumberNode(static_cast<std::int64_t>(room.available)));
  Put(node, "size_bytes", NumberNode(static_cast<std::int64_t>(room.capacity)));
  return node;
}

DocNode HostView(const control::Host& host) {
  DocNode node = MapNode();
  if (!host.state.empty()) Put(node, "state", Folder(host.state));
  if (!host.run.empty()) Put(node, "run", Folder(host.run));
  if (host.certificate.empty()) return node;
  DocNode certificate = MapNode();
  Put(certificate, "path", TextNode(host.certificate));
  if (const auto end_ms = net::CertificateEndMs(host.certificate)) {
    Put(certificate, "expires_at", TextNode(FormatTimeMs(*end_ms)));
  }
  Put(node, "certificate", std::move(certificate));
  return node;
}

}  // namespace

void GetVersion(Desk& desk, const Call& call) {
  desk.Read(
      call,
      [version = desk.version()](Controller& control, const Access& access) -> Result<Answer> {
        DocNode node = MapNode();
        Put(node, "version", TextNode(version));
        Put(node, "now", TextNode(FormatTimeMs(control.NowMs())));
        Put(node, "revision", NumberNode(static_cast<std::int64_t>(control.state().revision())));
        Put(node, "jobs", NumberNode(static_cast<std::int64_t>(control.state().live_jobs())));
        Put(node, "ended", NumberNode(static_cast<std::int64_t>(control.state().ended_jobs())));
        if (access.IsAdmin()) Put(node, "host", HostView(control.settings().host));
        return node;
      });
}

void GetOpenApi(Desk& desk, const Call& call, const model::DocNode& document) {
  (void)desk;
  ReplyNode(*call.exchange, document, 200);
}

}  // namespace muster::api
