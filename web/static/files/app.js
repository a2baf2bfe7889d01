// The pages work without scripts; these modules keep them current and quick.

import * as actions from "./actions.js";
import * as charts from "./charts.js";
import * as copy from "./copy.js";
import * as groups from "./groups.js";
import * as keyboard from "./keyboard.js";
import * as live from "./live.js";
import * as menus from "./menus.js";
import * as policies from "./policies.js";
import * as refresh from "./refresh.js";
import * as selection from "./selection.js";
import * as suggest from "./suggest.js";
import * as times from "./times.js";

// A user who is not logged in sees a page without anything to keep current.
if (document.body.dataset.live) {
  times.start();
  actions.start();
  charts.start();
  copy.start();
  keyboard.start();
  menus.start();
  selection.start();
  suggest.start();
  groups.start();
  refresh.start();
  live.start();
  policies.start();
}
