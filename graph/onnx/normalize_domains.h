#pragma once
// Domains that nodes are in between a file and its decoding; no protobuf is needed to know them.

namespace zeroplan {

// Nodes of an old meaning that depends on shapes; decode_legacy.cc and the control flow know them.
inline constexpr char kLegacyDomain[] = "ai.zeroplan.legacy";
// Nodes that ONNX's converter must not touch; restore_nodes puts them back into the default domain.
inline constexpr char kModernDomain[] = "ai.zeroplan.modern";
// The same of ai.onnx.ml.
inline constexpr char kModernMlDomain[] = "ai.zeroplan.modern.ml";

}  // namespace zeroplan
