#include "api/meta.h"

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
  desk.Read(call, [](Controller&, const Access&) -> Result<Answer> { return Status("ok"); });
}

// An empty change: it is answered when the store takes it.
void GetReady(Desk& desk, const Call& call) {
  desk.service().Change([](Controller&) {},
                        [call](const Result<void>& written) {
                          if (!written) return ReplyError(*call.exchange, written.error());
                          ReplyNode(*call.exchange, Status("ready"), 200);
                        });
}

void GetVersion(Desk& desk, const Call& call) {
  desk.Read(call, [version = desk.version()](Controller& control, const Access&) -> Result<Answer> {
    DocNode node = MapNode();
    Put(node, "version", TextNode(version));
    Put(node, "revision", NumberNode(static_cast<std::int64_t>(control.state().revision())));
    Put(node, "jobs", NumberNode(static_cast<std::int64_t>(control.state().live_jobs())));
    Put(node, "ended", NumberNode(static_cast<std::int64_t>(control.state().ended_jobs())));
    return node;
  });
}

void GetOpenApi(Desk& desk, const Call& call, const model::DocNode& document) {
  (void)desk;
  ReplyNode(*call.exchange, document, 200);
}

}  // namespace muster::api
