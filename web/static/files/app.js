// The pages work without scripts; these modules keep them current and quick.

import * as actions from "./actions.js";
import * as copy from "./copy.js";
import * as keyboard from "./keyboard.js";
import * as live from "./live.js";
import * as operation from "./operation.js";
import * as selection from "./selection.js";
import * as suggest from "./suggest.js";
import * as times from "./times.js";

times.start();
actions.start();
copy.start();
keyboard.start();
selection.start();
suggest.start();
live.start();
operation.start();
