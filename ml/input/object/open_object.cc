#include "ml/input/object/open_object.h"

#include "base/status_macros.h"
#include "base/uri/web_url.h"
#include "ml/input/object/object_store.h"
#include "ml/input/object/object_uri.h"
#include "ml/input/object/web_object.h"
#include "ml/input/web/web_client.h"

namespace parasol {

absl::StatusOr<std::shared_ptr<const StoredObject>> OpenStoredObject(
    const std::string& uri) {
  if (IsWebUrl(uri)) {
    // Nothing is opened for a URL that is refused.
    RETURN_IF_ERROR(ParseWebUrl(uri).status());
    ASSIGN_OR_RETURN(WebClient* const client, WebClient::OfProcess());
    return OpenWebObject(uri, *client);
  }
  ASSIGN_OR_RETURN(const ObjectUri parts, ParseObjectUri(uri));
  ASSIGN_OR_RETURN(const std::shared_ptr<const ObjectStore> store,
                   ObjectStore::Open(parts));
  return store->OpenObject(parts.path);
}

}  // namespace parasol
